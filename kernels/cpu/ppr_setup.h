// Everything that a block needs before its first pass: edge-type weights, degrees, restarts and the start. Included once per
// instruction set.
#pragma once

#include "hopfuse/ppr_plan.h"
#include "ppr_block.h"
#include "ppr_degrees.h"

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

// Adds the entries of marked rows to `marks`.
inline void spread_marks(const PprGraph& g, int64_t words, const uint64_t* from, uint64_t* marks) {
    std::memcpy(marks, from, size_t(words) * sizeof(uint64_t));
    for (int64_t word = 0; word < words; ++word)
        for (uint64_t rows = from[word]; rows != 0; rows &= rows - 1) {
            const int64_t row = word * 64 + __builtin_ctzll(rows);
            for (int64_t e = g.indptr[row]; e < g.indptr[row + 1]; ++e)
                marks[g.indices[e] >> 6] |= uint64_t{1} << (g.indices[e] & 63);
        }
}

// Marks the rows that passes 1 and 2 make nonzero. In an undirected graph these are the entries of marked rows.
template <int L>
void setup_near(PprBlock<L>& block) {
    if (!block.near_is_known()) return;
    spread_marks(block.graph, block.num_tiles, block.words, block.near);
    spread_marks(block.graph, block.num_tiles, block.near, block.reach);
    constexpr int64_t many = 4;  // a row with marked entries costs as much as four rows of a pass that reads all
    int64_t rows = 0;
    for (int64_t word = 0; word < block.num_tiles; ++word) rows += __builtin_popcountll(block.reach[word]);
    block.reaches_many = rows * many > block.graph.num_nodes;
}

// Whether the lane cannot lose mass, so that the bound per node holds: the operator is symmetric and no restart is at a node
// without edges.
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

// Allocates buffers for the sums of a pass over slices or tiles, and of a certificate over tiles. False: no memory.
template <int L>
bool setup_partials(PprBlock<L>& block) {
    const PprGraph& graph = block.graph;
    size_t partials = 0, unit_sums = 0;
    if (L <= PPR_FEW_LANES && graph.slices != nullptr) {
        partials = (size_t(graph.slices->segment_units) + 1) * L;
        unit_sums = L == 1 ? partials : 0;
    }
    if (L <= PPR_TILE_LANES && graph.tiles != nullptr)
        partials = unit_sums = size_t(block.queries.execution.threads) * size_t(graph.tiles->most_units) * L;
    block.partial = block.work.template reserve<float>(slot_partial, partials);
    block.unit_sums = block.work.template reserve<double>(slot_unit_sums, unit_sums);
    return block.partial != nullptr && block.unit_sums != nullptr;
}

template <int L>
bool setup_block(PprBlock<L>& block) {
    const size_t state = size_t(block.graph.num_nodes) * L;
    block.current = block.work.template reserve<float>(slot_current, state);
    block.next = block.work.template reserve<float>(slot_next, state);
    block.result = block.work.template reserve<float>(slot_result, state);
    block.sums = block.work.template reserve<LaneSums<L>>(slot_sums, 2 * size_t(block.queries.execution.threads));
    if (!block.current || !block.next || !block.result || !block.sums || !setup_partials<L>(block)) return false;
    if (!setup_types<L>(block) || !setup_degrees<L>(block) || !setup_restart<L>(block)) return false;
    setup_near<L>(block);
    block.all_keep = true;
    for (int lane = 0; lane < L; ++lane) {
        block.keeps[lane] = keeps_mass<L>(block, lane);
        block.all_keep = block.all_keep && (block.keeps[lane] || block.query[lane] < 0);
    }
    return true;
}

// ||s||_{D^-1}, over nodes from which the walk continues.
template <int L>
double restart_norm(const PprBlock<L>& block, int lane) {
    const PprQueries& q = block.queries;
    TreeSum<double> sum;
    for (int64_t i = q.restart_indptr[block.query[lane]]; i < q.restart_indptr[block.query[lane] + 1]; ++i) {
        const int64_t row = row_of_node(block.graph, q.restart_node[i]);
        const double s = block.restart64[block.restart_index(row) * L + lane];
        const double inverse = block.scale64[block.per_lane ? row * L + lane : row];
        sum.push(s * s * inverse / (block.attraction == nullptr ? 1.0 : attraction_row<L>(block, row)[lane]));
    }
    return std::sqrt(sum.result());
}

// The number of passes after which theory guarantees tol for any query (hopfuse/ppr.h, STOP).
template <int L>
int64_t pass_limit(const PprBlock<L>& block, int lane) {
    const double norm = block.accelerates[lane] ? restart_norm<L>(block, lane) : 0.0;
    return ppr_pass_limit(block.accelerates[lane], block.damping[lane], block.queries.tol, block.volume[lane], norm);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
