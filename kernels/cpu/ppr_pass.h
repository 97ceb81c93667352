// One float32 pass over the graph for a block of lanes. Included once per instruction set.
#pragma once

#include "ppr_block.h"

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
struct PerTypeEdges {
    const float *weight, *scale, *eta;
    const uint8_t* edge_type;
    int64_t num_types;
    bool per_lane;
    explicit PerTypeEdges(const PprBlock<L>& block)
        : weight(block.graph.weight), scale(block.scale32), eta(block.eta32), edge_type(block.graph.edge_type),
          num_types(block.graph.num_types), per_lane(block.per_lane) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t u, F<L> acc) const {
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        F<L> factor = lanes32<L>(scale, u * num_types + type, per_lane);
        if (!per_lane && eta != nullptr) factor = F<L>::mul(factor, F<L>::load(eta + type * L));
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

// How a pass reads the rows: the first two, whatever the masks; later ones, with masks or without.
enum class Rows { sparse, masked, dense };

// Reads `current` (pass 1: b) and, for Chebyshev, the iterate before it in `next` (pass 1: 0, pass 2: b), writes
// `next`, and leaves the tiles' L1 residuals and largest |z - y| in tile32 when `measure` is set. Pass 1 also marks
// the rows that are not 0 from then on.
template <int L, class Edges, Rows rows>
void pass_tile(const PprBlock<L>& shared, const float* damping, const float* omega, bool measure, int64_t tile) {
    const PprBlock<L> block = shared;  // no store of a row can change a local copy
    const Edges edges(block);
    const int64_t* indptr = block.graph.indptr;
    // fl(g_v fl(d)); for per_type g is 1, or 0 in lanes that may not hold mass here.
    const float* g = block.queries.per_type ? block.unscale32 : block.scale32;
    const F<L> d = F<L>::load(damping), om = F<L>::load(omega);
    F<L> sum = F<L>::zero(), largest = F<L>::zero();
    uint64_t near_rows = 0;
    const int64_t end = block.tile_end(tile);
    constexpr int64_t ahead = 24;
    const int32_t* later = block.graph.indices + (indptr[end] + ahead <= block.graph.num_stored ? ahead : 0);
    for (int64_t row = block.tile_begin(tile); row < end; ++row) {
        float* target = block.next + row * L;
        if (rows == Rows::sparse && block.pass == 1 && block.near_is_known() && !block.is_near(row)) {
            F<L>::store(target, F<L>::zero());
            continue;
        }
        const bool restarts = block.has_restart(row);
        const int64_t first = indptr[row], last = indptr[row + 1];
        F<L> s;
        bool near = restarts;
        if (rows != Rows::dense && block.mask32 != nullptr && last - first > PPR_SEGMENT) {
            s = masked_row_sum<L, Edges>(block, edges, first, last, near);
        } else if (rows == Rows::sparse) {
            s = sparse_row_sum<L, Edges>(block, edges, first, last, near);
        } else {
            s = dense_row_sum<L, Edges>(block.current, block.graph.indices, later, edges, first, last);
        }
        if (rows == Rows::sparse) near_rows |= uint64_t{near ? 1u : 0u} << (row & 63);
        const F<L> gd = g == nullptr ? d : F<L>::mul(lanes32<L>(g, row, block.per_lane), d);
        const F<L> b = restarts ? F<L>::load(block.restart32 + block.restart_index(row) * L) : F<L>::zero();
        const F<L> z = F<L>::fma(gd, s, b);
        if (measure) {
            const F<L> y = block.pass == 1 ? b : F<L>::load(block.current + row * L);
            const F<L> gap = F<L>::abs(F<L>::sub(z, y));
            sum = F<L>::fma(node_weight32<L>(block, row), gap, sum);
            largest = F<L>::max(largest, gap);
        }
        if (block.chebyshev && first != last) {
            const F<L> before = block.pass == 1 ? F<L>::zero() : block.pass == 2 ? b : F<L>::load(target);
            F<L>::store(target, F<L>::fma(om, F<L>::sub(z, before), before));
        } else {
            F<L>::store(target, z);
        }
    }
    if (block.pass == 1 && !block.near_is_known()) block.near[tile] = near_rows;
    if (measure) {
        F<L>::store(block.tile32 + tile * 2 * L, sum);
        F<L>::store(block.tile32 + tile * 2 * L + L, largest);
    }
}

template <int L, class Edges>
void pass_with(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    const auto tile_of = block.pass <= 2           ? pass_tile<L, Edges, Rows::sparse>
                         : block.mask32 != nullptr ? pass_tile<L, Edges, Rows::masked>
                                                   : pass_tile<L, Edges, Rows::dense>;
    const int64_t tiles = block.num_tiles;
#pragma omp parallel for schedule(dynamic, 8) num_threads(block.queries.threads)
    for (int64_t tile = 0; tile < tiles; ++tile) tile_of(block, damping, omega, measure, tile);
}

template <int L>
void ppr_pass(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    if (block.queries.per_type) return pass_with<L, PerTypeEdges<L>>(block, damping, omega, measure);
    if (block.eta32 != nullptr) return pass_with<L, TypedEdges<L>>(block, damping, omega, measure);
    if (block.graph.weight != nullptr) return pass_with<L, WeightedEdges<L>>(block, damping, omega, measure);
    return pass_with<L, PlainEdges<L>>(block, damping, omega, measure);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
