// A block of L queries that walk together. The state has a row per stored row and a lane per query; tiles of stored rows are
// the units of work. Included once per instruction set.
#pragma once

#include <cstring>
#include <utility>

#include "hopfuse/ppr.h"
#include "hopfuse/ppr_certificate.h"
#include "hopfuse/scalar.h"
#include "ppr_sums.h"
#include "simd.h"
#include "threads.h"
#include "workspace.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The stored row of an internal node, and the node of a stored row.
HF_INLINE int64_t row_of_node(const PprGraph& graph, int64_t node) {
    return graph.place == nullptr ? node : graph.place[node];
}
HF_INLINE int64_t node_of_row(const PprGraph& graph, int64_t row) {
    return graph.internal == nullptr ? row : graph.internal[row];
}

// Slots of the workspace.
enum PprSlot {
    slot_current,
    slot_next,
    slot_result,
    slot_scale32,
    slot_unscale32,
    slot_scale64,
    slot_unscale64,
    slot_eta,
    slot_words,
    slot_rank,
    slot_restart32,
    slot_restart64,
    slot_sums,
    slot_topk,
    slot_topk_merge,
    slot_selected,
    slot_mask,
    slot_near,
    slot_reach,
    slot_partial,
    slot_correction,
    slot_remainder,
    slot_every_row,
    slot_every_rank,
    slot_moved,
    slot_attraction,
    slot_weighted,
    slot_unit_sums,
    num_ppr_slots,
};
static_assert(num_ppr_slots <= Workspace::max_slots);

// A subset of a block's lanes.
template <int L>
struct Lanes {
    bool has[L] = {};

    HF_MEMBER bool& operator[](int lane) { return has[lane]; }
    HF_MEMBER bool operator[](int lane) const { return has[lane]; }
    int count() const {
        int lanes = 0;
        for (const bool is_one : has) lanes += is_one ? 1 : 0;
        return lanes;
    }
    bool any() const { return count() > 0; }
    // Calls take(lane) for each.
    template <class Take>
    void each(const Take& take) const {
        for (int lane = 0; lane < L; ++lane)
            if (has[lane]) take(lane);
    }
};

// What loops over the rows of a block read and write. Each loop has its own copy, so that the compiler knows that storing a
// row does not change it.
template <int L>
struct BlockRows {
    const PprGraph& graph;
    const PprQueries& queries;
    bool chebyshev;  // the operator is symmetric

    float* current = nullptr;
    float* next = nullptr;
    int64_t pass = 1;
    float* result = nullptr;
    float* correction = nullptr;  // if not null, receives fl(r / deg) of `result` whenever r is measured

    // Degrees, shared by all lanes (stride 0) or with a value per lane (stride L).
    bool per_lane = false;
    const float* scale32 = nullptr;     // (N, T'[, L])
    const float* unscale32 = nullptr;   // (N[, L]); null for per_type
    const double* scale64 = nullptr;    // (N, T'[, L])
    const double* unscale64 = nullptr;  // (N[, L]); null for per_type
    bool has_lone_seed = false;  // some lane with its own degrees restarts at a node of degree 0 whose row has entries
    const float* mask32 = nullptr;      // (N, L) 1 where a lane may hold mass, else 0; null: everywhere
    const float* attraction = nullptr;  // (N, L) node weights, 0 where a lane may not hold mass; null: all 1
    uint64_t* weighted = nullptr;       // a bit per row: it has its own node weights; all others have `other`
    float* other = nullptr;             // (L,) powers of two
    float* other_inverse = nullptr;     // (L,)

    const float* eta32 = nullptr;   // (T, L) or null: all 1
    const double* eta64 = nullptr;  // (T, L) or null: all 1

    // Rows that hold restart mass of any lane: a bit per row, the number of such rows before each tile,
    // and their values, compact.
    uint64_t* words = nullptr;
    int32_t* rank = nullptr;
    bool all_restart = false;     // any row may; the first two passes then read all rows
    uint64_t* near = nullptr;     // a bit per row: it restarts or has an entry of such a row
    uint64_t* reach = nullptr;    // a bit per row: it is near or has an entry of such a row; valid if near_is_known()
    bool reaches_many = false;    // so many rows that pass 2 reads all; their state is 0 where it is not near
    float* restart32 = nullptr;   // (rows, L) fl((1 - d) s g)
    double* restart64 = nullptr;  // (rows, L) s, normalised

    float* partial = nullptr;     // sums of segments, in slices or tiles
    double* unit_sums = nullptr;  // float64 sums of segments, in slices of one lane or in tiles
    LaneSums<L>* sums = nullptr;  // (2 threads,) for sum_tiles, or for two sums at once

    BlockRows(const PprGraph& g, const PprQueries& q) : graph(g), queries(q), chebyshev(!q.per_type && !g.directed) {}

    int types_in_scale() const { return queries.per_type ? graph.num_types : 1; }
    bool has_restart(int64_t row) const { return (words[row >> 6] >> (row & 63)) & 1u; }
    // Whether one of rows row .. row + 7 has; row is a multiple of 8.
    bool have_restart(int64_t row) const { return ((words[row >> 6] >> (row & 63)) & 0xffu) != 0; }
    bool is_weighted(int64_t row) const { return (weighted[row >> 6] >> (row & 63)) & 1u; }
    bool near_is_known() const { return !graph.directed; }  // before pass 1; otherwise pass 1 finds it
    bool is_near(int64_t row) const { return (near[row >> 6] >> (row & 63)) & 1u; }
    // Whether a row is known to stay 0 in this pass, which is one of the first two.
    bool is_unreached(int64_t row) const { return near_is_known() && !((reached_by_pass(row) >> (row & 63)) & 1u); }
    // The same of rows row .. row + 63; row is a multiple of 64.
    bool are_unreached(int64_t row) const { return reached_by_pass(row) == 0; }
    uint64_t reached_by_pass(int64_t row) const { return (pass == 1 ? near : reach)[row >> 6]; }
    int64_t restart_index(int64_t row) const {
        const uint64_t before = words[row >> 6] & ((uint64_t{1} << (row & 63)) - 1);
        return rank[row >> 6] + __builtin_popcountll(before);
    }

    bool restarts(int64_t row, int lane) const {
        return has_restart(row) && restart64[restart_index(row) * L + lane] > 0.0;
    }
};

template <int L>
struct PprBlock : BlockRows<L> {
    Workspace& work;

    int64_t num_tiles;
    int64_t query[L];  // -1: an unused lane
    double damping[L];
    double volume[L];
    double volume_anchor[L];        // a guess, before degrees are known
    int64_t longest_row[L];         // the most entries that count in a row, or out of a node
    double slack[L];                // rounding of r, ppr_slack
    double missed[L];               // error of sums over nodes, ppr_missed
    bool keeps[L];                  // the lane cannot lose mass, so the bound per node holds
    bool all_keep;                  // the same for all lanes
    bool accelerates[L];            // uses Chebyshev's recurrence
    bool row_factor_underflows[L];  // factors of some row's sum underflow in float32: ppr_row_factor_underflows

    PprBlock(const PprGraph& g, const PprQueries& q, Workspace& w)
        : BlockRows<L>(g, q), work(w), num_tiles((g.num_nodes + PPR_TILE - 1) / PPR_TILE) {}

    // Lane i is query[i] of the batch; lanes from `count` on are unused.
    void take(const int64_t* first, int count) {
        for (int lane = 0; lane < L; ++lane) {
            query[lane] = lane < count ? first[lane] : -1;
            damping[lane] = lane < count ? this->queries.damping[first[lane]] : 0.0;
        }
    }
    int64_t tile_begin(int64_t tile) const { return tile * PPR_TILE; }
    int64_t tile_end(int64_t tile) const {
        const int64_t end = (tile + 1) * PPR_TILE;
        return end < this->graph.num_nodes ? end : this->graph.num_nodes;
    }
};

// Factors of Chebyshev's recurrence, pass by pass; 1 for lanes without it.
template <int L>
double first_omega(const PprBlock<L>& block, int lane) {
    const double d = block.damping[lane];
    return block.accelerates[lane] ? 1.0 / (1.0 - 0.5 * d * d) : 1.0;
}

template <int L>
double next_omega(const PprBlock<L>& block, int lane, double omega) {
    const double d = block.damping[lane];
    return block.accelerates[lane] ? 1.0 / (1.0 - 0.25 * d * d * omega) : 1.0;
}

// Values of rows are read W at a time: those of the lanes of a row (W = L), or of W rows of one lane (L = 1).

// The values at `index` for all lanes: one shared value, or one per lane.
template <int L, int W = L>
HF_INLINE F<W> lanes32(const float* table, int64_t index, bool per_lane) {
    return L == 1 || per_lane ? F<W>::load(table + index * L) : F<W>::all(table[index]);
}

template <int L, int W = L>
HF_INLINE D<W> lanes64(const double* table, int64_t index, bool per_lane) {
    return L == 1 || per_lane ? D<W>::load(table + index * L) : D<W>::all(table[index]);
}

// What is the same for all rows.
template <int W, int L>
HF_INLINE F<W> of_rows(F<L> lanes) {
    if constexpr (W == L) return lanes;
    else return F<W>::all(lanes.v);
}

template <int W, int L>
HF_INLINE D<W> of_rows(D<L> lanes) {
    if constexpr (W == L) return lanes;
    else return D<W>::all(lanes.v);
}

// A row's node weights, if there are any.
template <int L>
HF_INLINE const float* attraction_row(const BlockRows<L>& block, int64_t row) {
    return L == 1 || block.is_weighted(row) ? block.attraction + row * L : block.other;
}

// A measured value of a row, which is at least 0, divided by its node weight; 0 where that is 0.
template <int L, int W>
HF_INLINE D<W> over_attraction(const BlockRows<L>& block, int64_t row, D<W> measured) {
    if (block.attraction == nullptr) return measured;
    if (L > 1 && !block.is_weighted(row)) return D<W>::mul(measured, D<W>::widen(block.other_inverse));
    const D<W> weight = D<W>::widen(block.attraction + row * L);
    return D<W>::div(measured, D<W>::max(weight, D<W>::all(PPR_LEAST_WEIGHT)));
}

template <int L, int W>
HF_INLINE F<W> over_attraction(const BlockRows<L>& block, int64_t row, F<W> measured) {
    if (block.attraction == nullptr) return measured;
    if (L > 1 && !block.is_weighted(row)) return F<W>::mul(measured, F<W>::load(block.other_inverse));
    const F<W> weight = F<W>::load(block.attraction + row * L);
    return F<W>::div(measured, F<W>::max(weight, F<W>::all(static_cast<float>(PPR_LEAST_WEIGHT))));
}

// Copies some lanes of one state to another.
template <int L>
void copy_lanes(const PprBlock<L>& block, const Lanes<L>& lanes, const float* from, float* to) {
    uint32_t taken[L];
    for (int lane = 0; lane < L; ++lane) taken[lane] = lanes[lane] ? ~uint32_t{0} : 0;
    parallel_for(block.graph.num_nodes, block.queries.execution, [&](int64_t row, int) {
        uint32_t mine[L], others[L];  // bits, so that a select is one operation for many lanes
        std::memcpy(mine, from + row * L, sizeof mine);
        std::memcpy(others, to + row * L, sizeof others);
        for (int lane = 0; lane < L; ++lane) others[lane] = (mine[lane] & taken[lane]) | (others[lane] & ~taken[lane]);
        std::memcpy(to + row * L, others, sizeof others);
    });
}

// The iterates of lanes that have stopped, while others walk on. With Chebyshev's recurrence they stay where they are, since
// a pass with omega = 0 leaves the two buffers of a lane as they are; otherwise they are copied to `result`.
template <int L>
class Kept {
public:
    // Keeps the lanes of `from`, the current or the next state, that stop among the active ones.
    void keep(const PprBlock<L>& block, const Lanes<L>& stop, const Lanes<L>& active, float* from) {
        const bool all_stop = stop.count() == active.count();
        const bool moves = stop.any() && !block.chebyshev && !all_stop;
        if (moves) copy_lanes<L>(block, stop, from, block.result);
        stop.each([&](int lane) { where_[lane] = moves ? block.result : from; });
    }

    // Joins the kept lanes in `result`.
    void join(PprBlock<L>& block) const {
        float** const states[] = {&block.result, &block.current, &block.next};
        Lanes<L> held[3];
        int most = 0;
        for (int i = 0; i < 3; ++i) {
            for (int lane = 0; lane < L; ++lane) held[i][lane] = where_[lane] == *states[i];
            most = held[i].count() > held[most].count() ? i : most;
        }
        for (int i = 0; i < 3; ++i)
            if (i != most && held[i].any()) copy_lanes<L>(block, held[i], *states[i], *states[most]);
        std::swap(block.result, *states[most]);
    }

private:
    const float* where_[L] = {};
};

// deg_v, the factor from a row's state y_v to x_v; for per_type it is 1, or 0 in lanes that may not hold mass.
template <int L, int W = L>
HF_INLINE F<W> node_weight32(const BlockRows<L>& block, int64_t row) {
    return block.unscale32 == nullptr ? F<W>::all(1.0f) : lanes32<L, W>(block.unscale32, row, block.per_lane);
}

template <int L, int W = L>
HF_INLINE D<W> node_weight64(const BlockRows<L>& block, int64_t row) {
    return block.unscale64 == nullptr ? D<W>::all(1.0) : lanes64<L, W>(block.unscale64, row, block.per_lane);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
