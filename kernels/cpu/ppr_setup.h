// Everything a block needs before its first pass: edge-type weights, degrees, restarts, the start.
// Included once per instruction set.
#pragma once

#include "hopfuse/ppr_plan.h"
#include "ppr_block.h"

namespace hopfuse::HOPFUSE_ISA_NS {

template <int L>
bool setup_types(PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    if (q.eta == nullptr) return true;
    const int types = block.graph.num_types;
    double* eta64 = block.work.template reserve<double>(slot_eta, size_t(types) * L * 2);
    if (eta64 == nullptr) return false;
    float* eta32 = reinterpret_cast<float*>(eta64 + size_t(types) * L);
    for (int t = 0; t < types; ++t)
        for (int lane = 0; lane < L; ++lane) {
            const int64_t b = block.query[lane];
            eta64[t * L + lane] = b < 0 ? 1.0 : q.eta[b * types + t];
            eta32[t * L + lane] = static_cast<float>(eta64[t * L + lane]);
        }
    block.eta32 = eta32;
    block.eta64 = eta64;
    return true;
}

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

// Summed weight from row u to allowed nodes, one type, in ascending order of the target; `count` grows by such edges.
template <int L>
D<L> masked_degree(const PprBlock<L>& block, const float* mask, int64_t u, int type, D<L>& count) {
    const PprGraph& g = block.graph;
    const bool out = g.directed;
    const int64_t* indptr = out ? g.out_indptr : g.indptr;
    const int32_t* indices = out ? g.out_indices : g.indices;
    const float* weight = out ? g.out_weight : g.weight;
    const uint8_t* edge_type = out ? g.out_edge_type : g.edge_type;
    D<L> degree = D<L>::zero();
    for (int64_t e = indptr[u]; e < indptr[u + 1]; ++e) {
        if (edge_type != nullptr && edge_type[e] != type) continue;
        const double w = weight == nullptr ? 1.0 : weight[e];
        const D<L> counts = D<L>::widen(mask + int64_t{indices[e]} * L);
        degree = D<L>::fma(D<L>::all(w), counts, degree);
        count = D<L>::add(count, counts);
    }
    return degree;
}

// What the rounding of a residual hangs on, of each lane's own subgraph: the most entries in a row or out of a node, in
// `largest`, and the number of nodes that have any, in `sum`. `out`: entries out of row u, of any direction where edges go
// both ways.
template <int L>
void count_entries(const PprBlock<L>& block, const float* mask, int64_t u, D<L> out, LaneSums<L>& sizes) {
    const PprGraph& g = block.graph;
    D<L> most = out;
    if (g.directed) {
        D<L> in = D<L>::zero();
        for (int64_t e = g.indptr[u]; e < g.indptr[u + 1]; ++e)
            in = D<L>::add(in, D<L>::widen(mask + int64_t{g.indices[e]} * L));
        most = D<L>::max(in, out);
    }
    most = D<L>::mul(most, D<L>::widen(mask + u * L));
    sizes.largest = D<L>::max(sizes.largest, most);
    const D<L> more = D<L>::max(D<L>::sub(most, D<L>::all(1.0)), D<L>::zero());
    sizes.sum = D<L>::add(sizes.sum, D<L>::sub(most, more));
}

template <int L>
void degree_row(PprBlock<L>& block, const float* mask, int64_t u, float* scale32, float* unscale32, double* scale64,
                double* unscale64, LaneSums<L>& sizes) {
    const PprQueries& q = block.queries;
    const int types = block.graph.num_types;
    const float* allowed = mask + u * L;
    double joint[L] = {};
    D<L> entries = D<L>::zero();
    for (int t = 0; t < types; ++t) {
        double degree[L];
        if (q.allow != nullptr) {
            D<L>::store(degree, masked_degree<L>(block, mask, u, t, entries));
        } else {
            for (int lane = 0; lane < L; ++lane) degree[lane] = block.graph.degree[u * types + t];
        }
        for (int lane = 0; lane < L; ++lane) {
            const double eta = block.eta64 == nullptr ? 1.0 : block.eta64[t * L + lane];
            if (!q.per_type) {
                joint[lane] = std::fma(eta, degree[lane], joint[lane]);
                continue;
            }
            const double inverse = degree[lane] > 0.0 ? 1.0 / degree[lane] : 0.0;
            const int64_t at = (u * types + t) * L + lane;
            scale64[at] = allowed[lane] != 0.0f ? inverse : 0.0;
            const float inverse32 = static_cast<float>(scale64[at]);
            scale32[at] = block.eta32 == nullptr ? inverse32 : inverse32 * block.eta32[t * L + lane];
        }
    }
    if (q.allow != nullptr) count_entries<L>(block, mask, u, entries, sizes);
    for (int lane = 0; lane < L; ++lane) {
        const int64_t at = u * L + lane;
        const bool open = allowed[lane] != 0.0f;
        if (q.per_type) {
            unscale64[at] = open ? 1.0 : 0.0;
            unscale32[at] = open ? 1.0f : 0.0f;
            continue;
        }
        const bool walks = open && joint[lane] > 0.0;
        scale64[at] = walks ? 1.0 / joint[lane] : 0.0;
        scale32[at] = walks ? static_cast<float>(scale64[at]) : (open ? 1.0f : 0.0f);
        unscale64[at] = walks ? joint[lane] : (open ? 1.0 : 0.0);
        unscale32[at] = static_cast<float>(unscale64[at]);
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

template <int L>
bool setup_degrees(PprBlock<L>& block) {
    const PprGraph& g = block.graph;
    const PprQueries& q = block.queries;
    block.per_lane = q.allow != nullptr || (q.eta != nullptr && !q.per_type);
    if (q.allow == nullptr) set_rounding<L>(block, D<L>::all(double(g.longest_row)), D<L>::all(double(g.joined_nodes)));
    if (!block.per_lane) {
        block.scale32 = g.scale32, block.unscale32 = g.unscale32;
        block.scale64 = g.scale64, block.unscale64 = g.unscale64;
        for (int lane = 0; lane < L; ++lane) block.volume[lane] = g.volume;
        return true;
    }
    const size_t nodes = size_t(g.num_nodes) * L, scales = nodes * block.types_in_scale();
    float* scale32 = block.work.template reserve<float>(slot_scale32, scales);
    float* unscale32 = block.work.template reserve<float>(slot_unscale32, nodes);
    double* scale64 = block.work.template reserve<double>(slot_scale64, scales);
    double* unscale64 = block.work.template reserve<double>(slot_unscale64, nodes);
    if (!scale32 || !unscale32 || !scale64 || !unscale64) return false;
    float* mask = q.allow == nullptr ? block.next : block.work.template reserve<float>(slot_mask, nodes);
    if (mask == nullptr) return false;
    spread_mask<L>(block, mask);
    if (q.allow != nullptr) block.mask32 = mask;
    const auto take = [&](int64_t tile, LaneSums<L>& sizes) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            degree_row<L>(block, mask, row, scale32, unscale32, scale64, unscale64, sizes);
    };
    const LaneSums<L> sizes = sum_tiles(block.num_tiles, 8, q.threads, block.sums, take);
    if (q.allow != nullptr) set_rounding<L>(block, sizes.largest, sizes.sum);
    D<L> volume = D<L>::zero();  // in node order, as the volume of a whole graph
    for (int64_t node = 0; node < g.num_nodes && !q.per_type; ++node) {
        const int64_t row = row_of_node(g, node);
        double walks[L];
        for (int lane = 0; lane < L; ++lane) walks[lane] = scale64[row * L + lane] > 0.0 ? 1.0 : 0.0;
        volume = D<L>::fma(D<L>::load(walks), D<L>::load(unscale64 + row * L), volume);
    }
    D<L>::store(block.volume, volume);
    block.scale32 = scale32, block.unscale32 = unscale32;
    block.scale64 = scale64, block.unscale64 = unscale64;
    return true;
}

// Marks the rows with restart mass, then fills in s and b for each lane.
template <int L>
bool setup_restart(PprBlock<L>& block) {
    const PprQueries& q = block.queries;
    const int64_t words = block.num_tiles;
    block.words = block.work.template reserve<uint64_t>(slot_words, size_t(words) + 1);
    block.rank = block.work.template reserve<int32_t>(slot_rank, size_t(words) + 1);
    block.near = block.work.template reserve<uint64_t>(slot_near, size_t(words) + 1);
    block.reach = block.work.template reserve<uint64_t>(slot_reach, size_t(words) + 1);
    if (!block.words || !block.rank || !block.near || !block.reach) return false;
    std::memset(block.words, 0, size_t(words) * sizeof(uint64_t));
    for (int lane = 0; lane < L; ++lane) {
        if (block.query[lane] < 0) continue;
        for (int64_t i = q.restart_indptr[block.query[lane]]; i < q.restart_indptr[block.query[lane] + 1]; ++i) {
            const int64_t row = row_of_node(block.graph, q.restart_node[i]);
            block.words[row >> 6] |= uint64_t{1} << (row & 63);
        }
    }
    int64_t rows = 0;
    for (int64_t w = 0; w < words; ++w) {
        block.rank[w] = static_cast<int32_t>(rows);
        rows += __builtin_popcountll(block.words[w]);
    }
    block.restart32 = block.work.template reserve<float>(slot_restart32, size_t(rows) * L);
    block.restart64 = block.work.template reserve<double>(slot_restart64, size_t(rows) * L);
    if (!block.restart32 || !block.restart64) return false;
    std::memset(block.restart32, 0, size_t(rows) * L * sizeof(float));
    std::memset(block.restart64, 0, size_t(rows) * L * sizeof(double));
    for (int lane = 0; lane < L; ++lane) {
        if (block.query[lane] < 0) continue;
        const int64_t begin = q.restart_indptr[block.query[lane]], end = q.restart_indptr[block.query[lane] + 1];
        TreeSum<double> sum;
        for (int64_t i = begin; i < end; ++i) sum.push(q.restart_value[i]);
        const double total = sum.result();
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = row_of_node(block.graph, q.restart_node[i]), at = block.restart_index(row) * L + lane;
            const double share = q.restart_value[i] / total, s = share > 0.0 ? share : PPR_LEAST_SHARE;
            const double inverse = block.queries.per_type ? 0.0 : block.scale64[block.per_lane ? row * L + lane : row];
            block.restart64[at] = s;
            block.has_lone_seed = block.has_lone_seed || (block.per_lane && !q.per_type && !(inverse > 0.0));
            block.restart32[at] = static_cast<float>((1.0 - block.damping[lane]) * s * (inverse > 0.0 ? inverse : 1.0));
        }
    }
    return true;
}

// Adds the entries of marked rows to the marks.
inline void spread_marks(const PprGraph& g, int64_t words, const uint64_t* from, uint64_t* marks) {
    std::memcpy(marks, from, size_t(words) * sizeof(uint64_t));
    for (int64_t word = 0; word < words; ++word)
        for (uint64_t rows = from[word]; rows != 0; rows &= rows - 1) {
            const int64_t row = word * 64 + __builtin_ctzll(rows);
            for (int64_t e = g.indptr[row]; e < g.indptr[row + 1]; ++e)
                marks[g.indices[e] >> 6] |= uint64_t{1} << (g.indices[e] & 63);
        }
}

// Marks the rows that passes 1 and 2 make other than 0. Where edges go both ways they are the entries of marked rows.
template <int L>
void setup_near(PprBlock<L>& block) {
    if (!block.near_is_known()) return;
    spread_marks(block.graph, block.num_tiles, block.words, block.near);
    spread_marks(block.graph, block.num_tiles, block.near, block.reach);
}

// Whether no mass of the lane can be lost, so that the bound per node holds: a symmetric operator, and no restart at
// a node without edges.
template <int L>
bool keeps_mass(const PprBlock<L>& block, int lane) {
    const PprQueries& q = block.queries;
    if (!block.chebyshev || block.query[lane] < 0) return false;
    for (int64_t i = q.restart_indptr[block.query[lane]]; i < q.restart_indptr[block.query[lane] + 1]; ++i) {
        const int64_t row = row_of_node(block.graph, q.restart_node[i]);
        if (!(block.scale64[block.per_lane ? row * L + lane : row] > 0.0)) return false;
    }
    return true;
}

// Floats that a pass over slices or tiles sums units in.
template <int L>
size_t room_for_partials(const PprBlock<L>& block) {
    const PprGraph& graph = block.graph;
    if (L == 1 && graph.slices != nullptr) return size_t(graph.slices->segment_units) + 1;
    if (L <= PPR_TILE_LANES && graph.tiles != nullptr)
        return size_t(block.queries.threads) * size_t(graph.tiles->most_units) * L;
    return 0;
}

template <int L>
bool setup_block(PprBlock<L>& block) {
    const size_t state = size_t(block.graph.num_nodes) * L;
    block.current = block.work.template reserve<float>(slot_current, state);
    block.next = block.work.template reserve<float>(slot_next, state);
    block.result = block.work.template reserve<float>(slot_result, state);
    block.partial = block.work.template reserve<float>(slot_partial, room_for_partials<L>(block));
    block.sums = block.work.template reserve<LaneSums<L>>(slot_sums, size_t(block.queries.threads));
    if (!block.current || !block.next || !block.result || !block.partial || !block.sums) return false;
    if (!setup_types<L>(block) || !setup_degrees<L>(block) || !setup_restart<L>(block)) return false;
    setup_near<L>(block);
    block.all_keep = true;
    for (int lane = 0; lane < L; ++lane) {
        block.keeps[lane] = keeps_mass<L>(block, lane);
        block.all_keep = block.all_keep && (block.keeps[lane] || block.query[lane] < 0);
    }
    return true;
}

// ||s||_{D^-1}, over nodes that walk.
template <int L>
double restart_norm(const PprBlock<L>& block, int lane) {
    const PprQueries& q = block.queries;
    TreeSum<double> sum;
    for (int64_t i = q.restart_indptr[block.query[lane]]; i < q.restart_indptr[block.query[lane] + 1]; ++i) {
        const int64_t row = row_of_node(block.graph, q.restart_node[i]);
        const double s = block.restart64[block.restart_index(row) * L + lane];
        sum.push(s * s * block.scale64[block.per_lane ? row * L + lane : row]);
    }
    return std::sqrt(sum.result());
}

// Passes after which the theory promises tol, whatever the query (hopfuse/ppr.h, STOP).
template <int L>
int64_t pass_limit(const PprBlock<L>& block, int lane) {
    const double norm = block.chebyshev ? restart_norm<L>(block, lane) : 0.0;
    return ppr_pass_limit(block.chebyshev, block.damping[lane], block.queries.tol, block.volume[lane], norm);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
