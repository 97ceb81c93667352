// One float32 pass over the graph for a block of lanes. Included once per instruction set.
#pragma once

#include "ppr_block.h"
#include "ppr_rows.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// How one stored entry adds to a row's sum; see ORDER OF OPERATIONS in hopfuse/ppr.h. Each holds what it reads by value:
// the compiler then keeps it in registers, since no store can change it.
template <int L>
struct PlainEdges {  // all weights 1
    explicit PlainEdges(const PprBlock<L>&) {}
    [[gnu::always_inline]] F<L> operator()(int64_t, const float* y, int32_t, F<L> acc) const {
        return F<L>::add(acc, F<L>::load(y));
    }
};

template <int L>
struct WeightedEdges {
    const float* weight;
    explicit WeightedEdges(const PprBlock<L>& block) : weight(block.graph.weight) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        return F<L>::fma(F<L>::all(weight[e]), F<L>::load(y), acc);
    }
};

template <int L>
struct TypedEdges {
    const float *weight, *eta;
    const uint8_t* edge_type;
    explicit TypedEdges(const PprBlock<L>& block)
        : weight(block.graph.weight), eta(block.eta32), edge_type(block.graph.edge_type) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        const F<L> mine = F<L>::load(eta + (edge_type == nullptr ? 0 : edge_type[e]) * L);
        const F<L> factor = weight == nullptr ? mine : F<L>::mul(F<L>::all(weight[e]), mine);
        return F<L>::fma(factor, F<L>::load(y), acc);
    }
};

template <int L>
struct PerTypeEdges {  // read as they stand: what an entry's source gives by the entry's type
    const float *weight, *share, *eta;
    const uint8_t* edge_type;
    explicit PerTypeEdges(const PprBlock<L>& block)
        : weight(block.graph.weight), share(block.graph.share32), eta(block.eta32), edge_type(block.graph.edge_type) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t, F<L> acc) const {
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        F<L> factor = F<L>::all(share[e]);
        if (eta != nullptr) factor = F<L>::mul(factor, F<L>::load(eta + type * L));
        const F<L> moved = F<L>::mul(F<L>::load(x), factor);
        return F<L>::fma(F<L>::all(weight == nullptr ? 1.0f : weight[e]), moved, acc);
    }
};

template <int L>
struct MaskedTypeEdges {  // the same where each lane has scales of its own, eta in them
    const float *weight, *scale;
    const uint8_t* edge_type;
    int64_t num_types;
    explicit MaskedTypeEdges(const PprBlock<L>& block)
        : weight(block.graph.weight), scale(block.scale32), edge_type(block.graph.edge_type),
          num_types(block.graph.num_types) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t u, F<L> acc) const {
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        const F<L> factor = F<L>::load(scale + (u * num_types + type) * L);
        const F<L> moved = F<L>::mul(F<L>::load(x), factor);
        return F<L>::fma(F<L>::all(weight == nullptr ? 1.0f : weight[e]), moved, acc);
    }
};

// The state row of node u, or null where it is known to be 0: what is left out of a sum adds exactly 0. The first two
// passes read little of the graph's state: pass 1 the restart rows, in their compact table, pass 2 their neighbours.
template <int L>
HF_INLINE const float* state_row(const PprBlock<L>& block, int64_t u) {
    if (block.pass > 2) return block.current + u * L;
    if (block.pass == 2) return block.is_near(u) ? block.current + u * L : nullptr;
    return block.has_restart(u) ? block.restart32 + block.restart_index(u) * L : nullptr;
}

// A row longer than a segment where lanes are masked: segments are cut by the number of entries that a lane may
// use, so that entries of nodes outside (which add exactly 0) never change a sum.
template <int L, class Edges>
F<L> masked_row_sum(const PprBlock<L>& block, const Edges& edges, int64_t begin, int64_t end, bool& near) {
    const F<L> full = F<L>::all(float(PPR_SEGMENT));
    F<L> total = F<L>::zero(), acc = F<L>::zero(), count = F<L>::zero();
    for (int64_t e = begin; e < end; ++e) {
        const int32_t u = block.graph.indices[e];
        const float* y = state_row<L>(block, u);
        if (y != nullptr) acc = edges(e, y, u, acc), near = true;
        count = F<L>::add(count, F<L>::load(block.mask32 + int64_t{u} * L));
        uint32_t cut = F<L>::ge(count, full);
        if (cut == 0) continue;
        float totals[L], accs[L], counts[L];
        F<L>::store(totals, total), F<L>::store(accs, acc), F<L>::store(counts, count);
        for (; cut != 0; cut &= cut - 1) {
            const int lane = __builtin_ctz(cut);
            totals[lane] = totals[lane] + accs[lane];
            accs[lane] = counts[lane] = 0.0f;
        }
        total = F<L>::load(totals), acc = F<L>::load(accs), count = F<L>::load(counts);
    }
    return F<L>::add(total, acc);
}

// The sum over entries begin .. end - 1 of a row in the first two passes; says whether any entry was read.
template <int L, class Edges>
F<L> sparse_row_sum(const PprBlock<L>& block, const Edges& edges, int64_t begin, int64_t end, bool& near) {
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        F<L> acc = F<L>::zero();
        for (int64_t e = segment; e < stop; ++e) {
            const int32_t u = block.graph.indices[e];
            const float* y = state_row<L>(block, u);
            if (y != nullptr) acc = edges(e, y, u, acc), near = true;
        }
        total = F<L>::add(total, acc);
    }
    return total;
}

// The sum over entries begin .. end - 1 of a row. `later` is `indices`, some entries on: their state is asked for early,
// across the ends of rows, which no branch predictor foresees.
template <int L, class Edges>
HF_INLINE F<L> dense_row_sum(const float* current, const int32_t* indices, const int32_t* later, const Edges& edges,
                             int64_t begin, int64_t end) {
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        F<L> acc = F<L>::zero();
        for (int64_t e = segment; e < stop; ++e) {
            const float* soon = current + int64_t{later[e]} * L;
            for (int line = 0; line < L; line += 16) __builtin_prefetch(soon + line);
            const int32_t u = indices[e];
            acc = edges(e, current + int64_t{u} * L, u, acc);
        }
        total = F<L>::add(total, acc);
    }
    return total;
}

// The sums of `together` rows of `length` entries each, at most a segment: their chains of additions are independent,
// and the loops' ends are foreseen since rows of a length are stored side by side.
template <int L, int together, class Edges>
HF_INLINE void dense_rows_sum(const float* current, const int32_t* indices, const Edges& edges, int64_t begin,
                              int64_t length, F<L>* sums) {
    F<L> acc[together];
    HF_UNROLL for (int i = 0; i < together; ++i) acc[i] = F<L>::zero();
    for (int64_t j = 0; j < length; ++j) {
        HF_UNROLL for (int i = 0; i < together; ++i) {
            const int64_t e = begin + i * length + j;
            const int32_t u = indices[e];
            acc[i] = edges(e, current + int64_t{u} * L, u, acc[i]);
        }
    }
    HF_UNROLL for (int i = 0; i < together; ++i) sums[i] = F<L>::add(F<L>::zero(), acc[i]);  // as one segment
}

// How a pass reads the rows: the first two, whatever the masks; later ones, with masks or without.
enum class Rows { sparse, masked, dense };

// What a pass measures of a chunk of rows.
template <int L>
struct PassSums {
    F<L> residual = F<L>::zero(), largest = F<L>::zero();
    uint64_t near = 0;  // the rows that are not 0 after the pass, found by the first where they are not known before
};

// A chunk of rows, in the order that they are stored in. Reads `current` (pass 1: b) and, for Chebyshev, the iterate
// before it in `next` (pass 1: 0, pass 2: b), and writes `next`. With `measure`, |z - y| is summed or, where `gaps` is
// given, kept: row v's at gaps + v L.
template <int L, class Edges, Rows rows>
PassSums<L> pass_rows(const PprBlock<L>& shared, const float* damping, const float* omegas, bool measure, float* gaps,
                      int64_t begin, int64_t end) {
    const PprBlock<L> block = shared;  // no store of a row can change a local copy
    const Edges edges(block);
    const int64_t* indptr = block.graph.indptr;
    const int32_t* indices = block.graph.indices;
    // fl(g_v fl(d)); for per_type g is 1, or 0 in lanes that may not hold mass here.
    const float* g = block.queries.per_type ? block.unscale32 : block.scale32;
    const F<L> d = F<L>::load(damping), omega = F<L>::load(omegas);
    F<L> sum = F<L>::zero(), largest = F<L>::zero();
    uint64_t near_rows = 0;
    const auto finish = [&](int64_t row, F<L> s, bool is_empty) __attribute__((always_inline)) {
        float* target = block.next + row * L;
        const bool restarts = block.has_restart(row);
        const F<L> gd = g == nullptr ? d : F<L>::mul(lanes32<L>(g, row, block.per_lane), d);
        const F<L> b = restarts ? F<L>::load(block.restart32 + block.restart_index(row) * L) : F<L>::zero();
        const F<L> z = F<L>::fma(gd, s, b);
        if (measure) {
            const F<L> y = block.pass == 1 ? b : F<L>::load(block.current + row * L);
            const F<L> gap = F<L>::abs(F<L>::sub(z, y));
            if (gaps != nullptr) F<L>::store(gaps + row * L, gap);
            else sum = F<L>::fma(node_weight32<L>(block, row), gap, sum);
            largest = F<L>::max(largest, gap);
        }
        if (block.chebyshev && !is_empty) {
            const F<L> before = block.pass == 1 ? F<L>::zero() : block.pass == 2 ? b : F<L>::load(target);
            F<L>::store(target, F<L>::fma(omega, F<L>::sub(z, before), before));
        } else {
            F<L>::store(target, z);
        }
    };
    constexpr int together = rows_together<L>;
    const int32_t* later = indices + entries_ahead(block.graph, end);
    for (int64_t row = begin; row < end; ++row) {
        const int64_t first = indptr[row], last = indptr[row + 1];
        if (rows == Rows::sparse && block.is_unreached(row)) {
            F<L>::store(block.next + row * L, F<L>::zero());
            if (gaps != nullptr) F<L>::store(gaps + row * L, F<L>::zero());
            continue;
        }
        if constexpr (rows == Rows::dense && together > 1) {
            if (row + together <= end && have_one_length(indptr, row, together)) {
                F<L> sums[together];
                dense_rows_sum<L, together>(block.current, indices, edges, first, last - first, sums);
                HF_UNROLL for (int i = 0; i < together; ++i) finish(row + i, sums[i], first == last);
                row += together - 1;
                continue;
            }
        }
        F<L> s;
        bool near = block.has_restart(row);
        if (rows != Rows::dense && block.mask32 != nullptr && last - first > PPR_SEGMENT) {
            s = masked_row_sum<L, Edges>(block, edges, first, last, near);
        } else if (rows == Rows::sparse) {
            s = sparse_row_sum<L, Edges>(block, edges, first, last, near);
        } else {
            s = dense_row_sum<L, Edges>(block.current, indices, later, edges, first, last);
        }
        if (rows == Rows::sparse) near_rows |= uint64_t{near ? 1u : 0u} << (row & 63);
        finish(row, s, first == last);
    }
    return {sum, largest, near_rows};
}

// Leaves the tiles' L1 residuals, deg |z - y| summed in internal order, and largest |z - y| in tile32 when `measure` is set.
template <int L, class Edges, Rows rows>
void pass_tiles(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    parallel_for(block.num_tiles, 8, block.queries.threads, [&](int64_t tile, int) {
        const PassSums<L> sums = pass_rows<L, Edges, rows>(block, damping, omega, measure, nullptr,
                                                           block.tile_begin(tile), block.tile_end(tile));
        if (block.pass == 1 && !block.near_is_known()) block.near[tile] = sums.near;
        if (!measure) return;
        F<L>::store(block.tile32 + tile * 2 * L, sums.residual);
        F<L>::store(block.tile32 + tile * 2 * L + L, sums.largest);
    });
}

// The same where windows have an order of their own, and the pass measures.
template <int L, class Edges, Rows rows>
void pass_windows(const PprBlock<L>& block, const float* damping, const float* omega) {
    parallel_for(block.num_windows(), 1, block.queries.threads, [&](int64_t window, int thread) {
        const int64_t begin = window * PPR_WINDOW, end = block.window_end(window);
        float* gaps = reinterpret_cast<float*>(block.scratch_of(thread)) - begin * L;
        F<L> largest = F<L>::zero();
        for (int64_t chunk = begin / PPR_TILE; chunk * PPR_TILE < end; ++chunk) {
            const PassSums<L> sums = pass_rows<L, Edges, rows>(block, damping, omega, true, gaps,
                                                               block.tile_begin(chunk), block.tile_end(chunk));
            if (block.pass == 1 && !block.near_is_known()) block.near[chunk] = sums.near;
            largest = F<L>::max(largest, sums.largest);
        }
        for (int64_t tile = begin / PPR_TILE; tile * PPR_TILE < end; ++tile) {
            F<L> sum = F<L>::zero();
            for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node) {
                const int64_t row = row_of_node(block.graph, node);
                sum = F<L>::fma(node_weight32<L>(block, row), F<L>::load(gaps + row * L), sum);
            }
            F<L>::store(block.tile32 + tile * 2 * L, sum);
            F<L>::store(block.tile32 + tile * 2 * L + L, largest);  // of the window: the same in the end
        }
    });
}

template <int L, class Edges, Rows rows>
void pass_as(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    if (measure && block.graph.place != nullptr) return pass_windows<L, Edges, rows>(block, damping, omega);
    pass_tiles<L, Edges, rows>(block, damping, omega, measure);
}

template <int L, class Edges>
void pass_with(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    if (block.pass <= 2) return pass_as<L, Edges, Rows::sparse>(block, damping, omega, measure);
    if (block.mask32 != nullptr) return pass_as<L, Edges, Rows::masked>(block, damping, omega, measure);
    return pass_as<L, Edges, Rows::dense>(block, damping, omega, measure);
}

template <int L>
void ppr_pass(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    if (block.queries.per_type && block.per_lane)
        return pass_with<L, MaskedTypeEdges<L>>(block, damping, omega, measure);
    if (block.queries.per_type) return pass_with<L, PerTypeEdges<L>>(block, damping, omega, measure);
    if (block.eta32 != nullptr) return pass_with<L, TypedEdges<L>>(block, damping, omega, measure);
    if (block.graph.weight != nullptr) return pass_with<L, WeightedEdges<L>>(block, damping, omega, measure);
    return pass_with<L, PlainEdges<L>>(block, damping, omega, measure);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
