// Degrees of each lane's own walk, where filters, node weights or weights of edge types make them its own. Included once per
// instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "ppr_block.h"
#include "ppr_rows.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// 1 where a lane may hold mass, else 0, (N, L).
template <int L>
void spread_mask(const PprBlock<L>& block, float* mask) {
    const PprQueries& q = block.queries;
    const int64_t n = block.graph.num_nodes;
    parallel_for(block.num_tiles, q.threads, [&](int64_t tile, int) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            for (int lane = 0; lane < L; ++lane) {
                const int64_t b = q.allow_shared ? 0 : block.query[lane];
                const int64_t node = node_of_row(block.graph, row);
                const bool allowed = q.allow == nullptr || (block.query[lane] >= 0 && q.allow[b * n + node] != 0);
                mask[row * L + lane] = allowed ? 1.0f : 0.0f;
            }
    });
}

// Each lane's node weights, (N, L); 1 in unused lanes.
template <int L>
void spread_weights(const PprBlock<L>& block, float* weights) {
    const PprQueries& q = block.queries;
    float others[L];
    const float* columns[L];
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane];
        others[lane] = b < 0 ? 1.0f : q.other_weight[b];
        columns[lane] = b < 0 ? nullptr : q.node_weight + b * q.num_weighted;
    }
    const F<L> other = F<L>::load(others);
    parallel_for(block.graph.num_nodes, q.threads, [&](int64_t row, int) { F<L>::store(weights + row * L, other); });
    parallel_for(q.num_weighted, q.threads, [&](int64_t column, int) {
        float* const own = weights + row_of_node(block.graph, q.weighted_node[column]) * L;
        for (int lane = 0; lane < L; ++lane)
            if (columns[lane] != nullptr) own[lane] = columns[lane][column];
    });
}

// Whether a lane's node weights exclude a node.
template <int L>
bool weights_exclude(const PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane];
        if (b < 0) continue;
        const float* const own = q.node_weight + b * q.num_weighted;
        if (q.other_weight[b] == 0.0f || std::find(own, own + q.num_weighted, 0.0f) != own + q.num_weighted)
            return true;
    }
    return false;
}

// Makes weights 0 where the mask is, and the mask 0 where weights are.
template <int L>
void join_mask(const PprBlock<L>& block, float* mask, float* weights) {
    parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
        for (int64_t at = row * L; at < (row + 1) * L; ++at) {
            weights[at] = weights[at] * mask[at];
            mask[at] = weights[at] > 0.0f ? 1.0f : 0.0f;
        }
    });
}

// Fills in the block's mask and node weights where it has them. False: no memory.
template <int L>
bool setup_nodes(PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    const size_t nodes = size_t(block.graph.num_nodes) * L;
    const bool excludes = q.allow != nullptr || (q.node_weight != nullptr && weights_exclude<L>(block));
    float *mask = nullptr, *weights = nullptr;
    if (excludes) {
        mask = block.work.template reserve<float>(slot_mask, nodes);
        if (mask == nullptr) return false;
        spread_mask<L>(block, mask);
    }
    if (q.node_weight != nullptr) {
        weights = block.work.template reserve<float>(slot_attraction, nodes);
        if (weights == nullptr) return false;
        spread_weights<L>(block, weights);
    }
    if (mask != nullptr && weights != nullptr) join_mask<L>(block, mask, weights);
    block.mask32 = mask, block.attraction = weights;
    return true;
}

// Rows of entries out of each node: `share` is what a target counts for, (N, L).
template <int L>
struct OutRows {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const float* share;

    OutRows(const PprBlock<L>& block, const float* of_targets) : share(of_targets) {
        const PprGraph& g = block.graph;
        indptr = g.directed ? g.out_indptr : g.indptr;
        indices = g.directed ? g.out_indices : g.indices;
        weight = g.directed ? g.out_weight : g.weight;
        edge_type = g.directed ? g.out_edge_type : g.edge_type;
    }

    // Adds an entry; one of another type adds 0.
    HF_MEMBER D<L> add(int64_t e, int type, D<L> acc) const {
        const bool counts = edge_type == nullptr || edge_type[e] == type;
        const double w = !counts ? 0.0 : weight == nullptr ? 1.0 : weight[e];
        return D<L>::fma(D<L>::all(w), D<L>::widen(share + int64_t{indices[e]} * L), acc);
    }

    // Summed weight out of a row by one type, in ascending order of the target.
    HF_MEMBER D<L> degree(int64_t row, int type) const {
        D<L> sum = D<L>::zero();
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e) sum = add(e, type, sum);
        return sum;
    }

    // How many of a row's entries a lane does not exclude.
    HF_MEMBER D<L> count(int64_t row, const float* mask) const {
        D<L> entries = D<L>::zero();
        for (int64_t e = indptr[row]; e < indptr[row + 1]; ++e)
            entries = D<L>::add(entries, D<L>::widen(mask + int64_t{indices[e]} * L));
        return entries;
    }

    // The same of `together` rows of one length.
    template <int together>
    HF_MEMBER void degrees(int64_t row, int type, D<L>* sums) const {
        const int64_t begin = indptr[row], length = indptr[row + 1] - begin;
        HF_UNROLL for (int i = 0; i < together; ++i) sums[i] = D<L>::zero();
        for (int64_t j = 0; j < length; ++j)
            HF_UNROLL for (int i = 0; i < together; ++i) sums[i] = add(begin + i * length + j, type, sums[i]);
    }
};

// What the rounding of a residual hangs on, of each lane's own subgraph: the most entries in a row or out of a node, in
// `largest`, and the number of nodes that have any, in `sum`. `out`: entries out of row u, of any direction where edges go
// both ways.
template <int L>
void count_entries(const PprBlock<L>& block, int64_t u, D<L> out, LaneSums<L>& sizes) {
    const PprGraph& g = block.graph;
    D<L> most = out;
    if (g.directed) {
        D<L> in = D<L>::zero();
        for (int64_t e = g.indptr[u]; e < g.indptr[u + 1]; ++e)
            in = D<L>::add(in, D<L>::widen(block.mask32 + int64_t{g.indices[e]} * L));
        most = D<L>::max(in, out);
    }
    most = D<L>::mul(most, D<L>::widen(block.mask32 + u * L));
    sizes.largest = D<L>::max(sizes.largest, most);
    const D<L> more = D<L>::max(D<L>::sub(most, D<L>::all(1.0)), D<L>::zero());
    sizes.sum = D<L>::add(sizes.sum, D<L>::sub(most, more));
}

// The tables of degrees that are made, and what a lane's nodes count for: node weights, or 1, or 0 where it is excluded.
struct DegreeTables {
    float *scale32, *unscale32;
    double *scale64, *unscale64;
    const float* share;
};

// Takes the degrees of rows, type by type.
template <int L>
class DegreeEnd {
public:
    DegreeEnd(const PprBlock<L>& shared, const DegreeTables& tables) : block_(shared), tables_(tables) {}

    // The degree by one type: added to `joint`, or written for per_type.
    HF_MEMBER void take(int64_t row, int type, D<L> degree, D<L>& joint) const {
        if (!block_.queries.per_type) {
            const D<L> eta = block_.eta64 == nullptr ? D<L>::all(1.0) : D<L>::load(block_.eta64 + type * L);
            joint = D<L>::fma(eta, degree, joint);
            return;
        }
        const int64_t at = (row * block_.graph.num_types + type) * L;
        const F<L> inverse = inverse_of(row, degree, tables_.scale64 + at);
        F<L>::store(tables_.scale32 + at,
                    block_.eta32 == nullptr ? inverse : F<L>::mul(inverse, F<L>::load(block_.eta32 + type * L)));
    }

    HF_MEMBER void end(int64_t row, D<L> joint) const {
        const int64_t at = row * L;
        const float* const share = tables_.share + at;
        float* const unscale32 = tables_.unscale32 + at;
        double* const unscale64 = tables_.unscale64 + at;
        if (block_.queries.per_type) {
            for (int lane = 0; lane < L; ++lane) unscale64[lane] = unscale32[lane] = share[lane] > 0.0f ? 1.0f : 0.0f;
            return;
        }
        double degree[L], factor[L], *const scale64 = tables_.scale64 + at;
        inverse_of(row, joint, scale64);
        D<L>::store(degree, joint);
        D<L>::store(factor, D<L>::mul(D<L>::widen(share), D<L>::load(scale64)));
        for (int lane = 0; lane < L; ++lane) {
            const bool walks = scale64[lane] > 0.0;
            unscale64[lane] = walks ? degree[lane] : (share[lane] > 0.0f ? 1.0 : 0.0);
            unscale32[lane] = static_cast<float>(unscale64[lane]);
            tables_.scale32[at + lane] = walks ? static_cast<float>(factor[lane]) : share[lane];
        }
    }

private:
    // 1 / degree in float64, 0 where it is 0 or the lane excludes the node; and the same rounded.
    HF_MEMBER F<L> inverse_of(int64_t row, D<L> degree, double* inverse) const {
        const float* const share = tables_.share + row * L;
        double degrees[L], walks[L];
        D<L>::store(degrees, degree);
        for (int lane = 0; lane < L; ++lane) walks[lane] = degrees[lane] > 0.0 && share[lane] > 0.0f ? 1.0 : 0.0;
        D<L>::store(inverse, D<L>::div(D<L>::load(walks), D<L>::max(degree, D<L>::all(least_degree))));
        float rounded[L];
        for (int lane = 0; lane < L; ++lane) rounded[lane] = static_cast<float>(inverse[lane]);
        return F<L>::load(rounded);
    }

    static constexpr double least_degree =
        std::numeric_limits<double>::min();  // below any product of two float32 numbers
    const PprBlock<L> block_;
    const DegreeTables tables_;
};

// The degrees of a tile's rows, those of one length together.
template <int L>
void tile_degrees(const PprBlock<L>& block, int64_t tile, const DegreeTables& tables, LaneSums<L>& sizes) {
    constexpr int together = rows_together<L>;
    const int types = block.graph.num_types;
    const OutRows<L> rows(block, tables.share);
    const DegreeEnd<L> end_of(block, tables);
    const bool counts = block.mask32 != nullptr || block.attraction != nullptr;  // else degrees are the graph's own
    for (int64_t row = block.tile_begin(tile), end = block.tile_end(tile); row < end;) {
        const bool are_alike = counts && row + together <= end && have_one_length(rows.indptr, row, together);
        const int taken = are_alike ? together : 1;
        D<L> joint[together], degree[together];
        for (D<L>& sum : joint) sum = D<L>::zero();
        for (int type = 0; type < types; ++type) {
            if (are_alike) rows.template degrees<together>(row, type, degree);
            else degree[0] = counts ? rows.degree(row, type) : D<L>::all(block.graph.degree[row * types + type]);
            for (int i = 0; i < taken; ++i) end_of.take(row + i, type, degree[i], joint[i]);
        }
        for (int i = 0; i < taken; ++i) {
            end_of.end(row + i, joint[i]);
            if (block.mask32 == nullptr) continue;
            count_entries<L>(block, row + i, rows.count(row + i, block.mask32), sizes);
        }
        row += taken;
    }
}

// From the longest row of each lane's subgraph, and how many nodes of it have entries: what rounding may do.
template <int L>
void set_rounding(PprBlock<L>& block, D<L> longest_row, D<L> joined_nodes) {
    double longest[L], joined[L];
    D<L>::store(longest, longest_row), D<L>::store(joined, joined_nodes);
    for (int lane = 0; lane < L; ++lane) {
        const int64_t b = block.query[lane], nodes = static_cast<int64_t>(joined[lane]);
        const int64_t restarts = b < 0 ? 0 : block.queries.restart_indptr[b + 1] - block.queries.restart_indptr[b];
        block.longest_row[lane] = static_cast<int64_t>(longest[lane]);
        block.slack[lane] = ppr_slack(block.longest_row[lane], block.graph.num_types);
        block.missed[lane] = ppr_missed(nodes + restarts);
    }
}

// The sum of each lane's degrees, in node order, as the volume of a whole graph.
template <int L>
void set_volume(PprBlock<L>& block, const DegreeTables& tables) {
    D<L> volume = D<L>::zero();
    for (int64_t node = 0; node < block.graph.num_nodes && !block.queries.per_type; ++node) {
        const int64_t at = row_of_node(block.graph, node) * L;
        double walking[L];
        for (int lane = 0; lane < L; ++lane)
            walking[lane] = tables.scale64[at + lane] > 0.0 ? double{tables.share[at + lane]} : 0.0;
        volume = D<L>::fma(D<L>::load(walking), D<L>::load(tables.unscale64 + at), volume);
    }
    D<L>::store(block.volume, volume);
}

// How far node weights spread over the nodes that walk, and the factors of their rows.
template <int L>
void set_spread(PprBlock<L>& block, const DegreeTables& tables) {
    float weight[L], factor[L];
    for (int lane = 0; lane < L; ++lane) weight[lane] = factor[lane] = 1.0f;
    for (int64_t row = 0; row < block.graph.num_nodes; ++row)
        for (int lane = 0; lane < L; ++lane) {
            const int64_t at = row * L + lane;
            const bool walks = tables.scale64[at] > 0.0;
            const float own_weight = walks ? tables.share[at] : 1.0f, own_factor = walks ? tables.scale32[at] : 1.0f;
            weight[lane] = own_weight < weight[lane] ? own_weight : weight[lane];
            factor[lane] = own_factor < factor[lane] ? own_factor : factor[lane];
        }
    for (int lane = 0; lane < L; ++lane) {
        block.accelerates[lane] = ppr_accelerates(weight[lane]);
        block.is_faint[lane] = ppr_is_faint(factor[lane], block.damping[lane]);
    }
}

template <int L>
bool setup_degrees(PprBlock<L>& block) {
    const PprGraph& g = block.graph;
    const PprQueries& q = block.queries;
    if (!setup_nodes<L>(block)) return false;
    const bool masked = block.mask32 != nullptr, has_types = q.eta != nullptr && !q.per_type;
    block.per_lane = masked || block.attraction != nullptr || has_types;
    if (!masked) set_rounding<L>(block, D<L>::all(double(g.longest_row)), D<L>::all(double(g.joined_nodes)));
    for (int lane = 0; lane < L; ++lane) {
        block.volume[lane] = g.volume;
        block.accelerates[lane] = block.chebyshev;
        block.is_faint[lane] = false;
    }
    if (!block.per_lane) {
        block.scale32 = g.scale32, block.unscale32 = g.unscale32;
        block.scale64 = g.scale64, block.unscale64 = g.unscale64;
        return true;
    }
    const size_t nodes = size_t(g.num_nodes) * L, scales = nodes * block.types_in_scale();
    DegreeTables tables{};
    tables.scale32 = block.work.template reserve<float>(slot_scale32, scales);
    tables.unscale32 = block.work.template reserve<float>(slot_unscale32, nodes);
    tables.scale64 = block.work.template reserve<double>(slot_scale64, scales);
    tables.unscale64 = block.work.template reserve<double>(slot_unscale64, nodes);
    if (!tables.scale32 || !tables.unscale32 || !tables.scale64 || !tables.unscale64) return false;
    tables.share = block.attraction != nullptr ? block.attraction : block.mask32;
    if (tables.share == nullptr) {  // all count, by other weights of edge types
        spread_mask<L>(block, block.next);
        tables.share = block.next;
    }
    const auto take = [&](int64_t tile, LaneSums<L>& sizes) { tile_degrees<L>(block, tile, tables, sizes); };
    const LaneSums<L> sizes = sum_tiles(block.num_tiles, 8, q.threads, block.sums, take);
    if (masked) set_rounding<L>(block, sizes.largest, sizes.sum);
    set_volume<L>(block, tables);
    if (block.attraction != nullptr && block.chebyshev) set_spread<L>(block, tables);
    block.scale32 = tables.scale32, block.unscale32 = tables.unscale32;
    block.scale64 = tables.scale64, block.unscale64 = tables.unscale64;
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
