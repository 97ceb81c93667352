// One float32 pass over the graph for a block of lanes. Included once per instruction set.
#pragma once

#include "ppr_block.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// How one stored entry adds to a row's sum; see ORDER OF OPERATIONS in hopfuse/ppr.h.
template <int L>
struct PlainEdges {  // all weights 1
    explicit PlainEdges(const PprBlock<L>&) {}
    [[gnu::always_inline]] F<L> operator()(int64_t, const float* y, int32_t, F<L> acc) const {
        return F<L>::add(acc, F<L>::load(y));
    }
};

template <int L>
struct WeightedEdges {
    const PprBlock<L>& block;
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        return F<L>::fma(F<L>::all(block.graph.weight[e]), F<L>::load(y), acc);
    }
};

template <int L>
struct TypedEdges {
    const PprBlock<L>& block;
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        const PprGraph& g = block.graph;
        const int type = g.edge_type == nullptr ? 0 : g.edge_type[e];
        const F<L> eta = F<L>::load(block.eta32 + type * L);
        const F<L> factor = g.weight == nullptr ? eta : F<L>::mul(F<L>::all(g.weight[e]), eta);
        return F<L>::fma(factor, F<L>::load(y), acc);
    }
};

template <int L>
struct PerTypeEdges {
    const PprBlock<L>& block;
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t u, F<L> acc) const {
        const PprGraph& g = block.graph;
        const int type = g.edge_type == nullptr ? 0 : g.edge_type[e];
        const int64_t at = int64_t{u} * g.num_types + type;
        F<L> factor = lanes32<L>(block.scale32, at, block.per_lane);
        if (!block.per_lane && block.eta32 != nullptr) factor = F<L>::mul(factor, F<L>::load(block.eta32 + type * L));
        const F<L> moved = F<L>::mul(F<L>::load(x), factor);
        const float w = g.weight == nullptr ? 1.0f : g.weight[e];
        return F<L>::fma(F<L>::all(w), moved, acc);
    }
};

// A row longer than a segment where lanes are masked: segments are cut by the number of entries that a lane may
// use, so that entries of nodes outside (which add exactly 0) never change a sum.
template <int L, class Edges>
F<L> masked_row_sum(const PprBlock<L>& block, const Edges& edges, int64_t begin, int64_t end) {
    const F<L> full = F<L>::all(float(PPR_SEGMENT));
    F<L> total = F<L>::zero(), acc = F<L>::zero(), count = F<L>::zero();
    for (int64_t e = begin; e < end; ++e) {
        const int32_t u = block.graph.indices[e];
        acc = edges(e, block.current + int64_t{u} * L, u, acc);
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

// The first pass reads b alone, which is 0 but where a query restarts: only those rows are read. What is left out adds
// exactly 0.
template <int L, class Edges>
F<L> first_row_sum(const PprBlock<L>& block, const Edges& edges, int64_t begin, int64_t end) {
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        F<L> acc = F<L>::zero();
        for (int64_t e = segment; e < stop; ++e) {
            const int32_t u = block.graph.indices[e];
            if (block.has_restart(u)) acc = edges(e, block.current + int64_t{u} * L, u, acc);
        }
        total = F<L>::add(total, acc);
    }
    return total;
}

template <int L, class Edges>
HF_INLINE F<L> row_sum(const PprBlock<L>& block, const Edges& edges, int64_t row) {
    const PprGraph& g = block.graph;
    const int64_t begin = g.indptr[row], end = g.indptr[row + 1];
    if (block.mask32 != nullptr && end - begin > PPR_SEGMENT) return masked_row_sum<L, Edges>(block, edges, begin, end);
    if (block.first_pass) return first_row_sum<L, Edges>(block, edges, begin, end);
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        F<L> acc = F<L>::zero();
        for (int64_t e = segment; e < stop; ++e) {
            prefetch_row<L>(g, block.current, e);
            const int32_t u = g.indices[e];
            acc = edges(e, block.current + int64_t{u} * L, u, acc);
        }
        total = F<L>::add(total, acc);
    }
    return total;
}

// fl(g_v fl(d)); for per_type g is 1, or 0 in lanes that may not hold mass here.
template <int L>
HF_INLINE F<L> row_factor(const PprBlock<L>& block, int64_t row, F<L> d) {
    const float* g = block.queries.per_type ? block.unscale32 : block.scale32;
    return g == nullptr ? d : F<L>::mul(lanes32<L>(g, row, block.per_lane), d);
}

// Reads `current` (and, for Chebyshev, the iterate before it in `next`, which is 0 before the first pass), writes `next`, and leaves the
// tiles' L1 residuals and largest |z - y| in tile32 when `measure` is set.
template <int L, class Edges>
void pass_tiles(const PprBlock<L>& block, const Edges& edges, const float* damping, const float* omega, bool measure,
                int64_t tile) {
    const PprGraph& g = block.graph;
    const F<L> d = F<L>::load(damping), om = F<L>::load(omega);
    F<L> sum = F<L>::zero(), largest = F<L>::zero();
    for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row) {
        const F<L> s = row_sum<L, Edges>(block, edges, row);
        const F<L> gd = row_factor<L>(block, row, d);
        const F<L> b =
            block.has_restart(row) ? F<L>::load(block.restart32 + block.restart_index(row) * L) : F<L>::zero();
        const F<L> z = F<L>::fma(gd, s, b);
        if (measure) {
            const F<L> gap = F<L>::abs(F<L>::sub(z, F<L>::load(block.current + row * L)));
            sum = F<L>::fma(node_weight32<L>(block, row), gap, sum);
            largest = F<L>::max(largest, gap);
        }
        float* target = block.next + row * L;
        if (block.chebyshev && g.indptr[row] != g.indptr[row + 1]) {
            const F<L> before = block.first_pass ? F<L>::zero() : F<L>::load(target);
            F<L>::store(target, F<L>::fma(om, F<L>::sub(z, before), before));
        } else {
            F<L>::store(target, z);
        }
    }
    if (measure) {
        F<L>::store(block.tile32 + tile * 2 * L, sum);
        F<L>::store(block.tile32 + tile * 2 * L + L, largest);
    }
}

template <int L, class Edges>
void pass_with(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    const Edges edges{block};
    const int64_t tiles = block.num_tiles;
#pragma omp parallel for schedule(dynamic, 8) num_threads(block.queries.threads)
    for (int64_t tile = 0; tile < tiles; ++tile) pass_tiles<L, Edges>(block, edges, damping, omega, measure, tile);
}

template <int L>
void ppr_pass(const PprBlock<L>& block, const float* damping, const float* omega, bool measure) {
    if (block.queries.per_type) return pass_with<L, PerTypeEdges<L>>(block, damping, omega, measure);
    if (block.eta32 != nullptr) return pass_with<L, TypedEdges<L>>(block, damping, omega, measure);
    if (block.graph.weight != nullptr) return pass_with<L, WeightedEdges<L>>(block, damping, omega, measure);
    return pass_with<L, PlainEdges<L>>(block, damping, omega, measure);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
