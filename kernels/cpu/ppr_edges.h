// The contribution of one stored entry to a row's sum. Included once per instruction set.
#pragma once

#include "ppr_block.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The contribution of one stored entry to a row's sum; see ORDER OF OPERATIONS in hopfuse/ppr.h. `stored` has the entries:
// the graph or its slices. Each type holds its inputs by value, so that the compiler can keep them in registers.
template <int L>
struct PlainEdges {  // all weights 1
    template <class Stored>
    PlainEdges(const BlockRows<L>&, const Stored&) {}
    [[gnu::always_inline]] F<L> operator()(int64_t, const float* y, int32_t, F<L> acc) const {
        return F<L>::add(acc, F<L>::load(y));
    }
};

template <int L>
struct WeightedEdges {
    const float* weight;
    template <class Stored>
    WeightedEdges(const BlockRows<L>&, const Stored& stored) : weight(stored.weight) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        return F<L>::fma(F<L>::all(weight[e]), F<L>::load(y), acc);
    }
};

template <int L>
struct TypedEdges {  // weights of edge types; without any, the same bits as above at more cost
    const float *weight, *eta;
    const uint8_t* edge_type;
    template <class Stored>
    TypedEdges(const BlockRows<L>& block, const Stored& stored)
        : weight(stored.weight), eta(block.eta32), edge_type(stored.edge_type) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* y, int32_t, F<L> acc) const {
        F<L> factor = F<L>::all(weight == nullptr ? 1.0f : weight[e]);
        if (eta != nullptr) factor = F<L>::mul(factor, F<L>::load(eta + (edge_type == nullptr ? 0 : edge_type[e]) * L));
        return F<L>::fma(factor, F<L>::load(y), acc);
    }
};

template <int L>
struct PerTypeEdges {  // reads the share of an entry's source by the entry's type from a table
    const float *weight, *share, *eta;
    const uint8_t* edge_type;
    template <class Stored>
    PerTypeEdges(const BlockRows<L>& block, const Stored& stored)
        : weight(stored.weight), share(stored.share32), eta(block.eta32), edge_type(stored.edge_type) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t, F<L> acc) const {
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        F<L> factor = F<L>::all(share[e]);
        if (eta != nullptr) factor = F<L>::mul(factor, F<L>::load(eta + type * L));
        const F<L> moved = F<L>::mul(F<L>::load(x), factor);
        return F<L>::fma(F<L>::all(weight == nullptr ? 1.0f : weight[e]), moved, acc);
    }
};

template <int L>
struct MaskedTypeEdges {  // the same if each lane has its own scales, which include eta
    const float *weight, *scale;
    const uint8_t* edge_type;
    int64_t num_types;
    template <class Stored>
    MaskedTypeEdges(const BlockRows<L>& block, const Stored& stored)
        : weight(stored.weight), scale(block.scale32), edge_type(stored.edge_type), num_types(block.graph.num_types) {}
    [[gnu::always_inline]] F<L> operator()(int64_t e, const float* x, int32_t u, F<L> acc) const {
        const int type = edge_type == nullptr ? 0 : edge_type[e];
        const F<L> factor = F<L>::load(scale + (u * num_types + type) * L);
        const F<L> moved = F<L>::mul(F<L>::load(x), factor);
        return F<L>::fma(F<L>::all(weight == nullptr ? 1.0f : weight[e]), moved, acc);
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
