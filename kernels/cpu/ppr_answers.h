// Copies results from a block's lanes to the caller's arrays: all scores, or ranked and proven lists with their evidence.
// Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "ppr_certify.h"
#include "ppr_topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct Outputs {
    float* scores;       // (B, N) or null
    const PprTopk* top;  // or null
    PprEvidence evidence;
};

template <int L>
void write_evidence(const PprBlock<L>& block, const bool* write, const PprCertificate<L>& certificate,
                    const PprEvidence& evidence) {
    for (int lane = 0; lane < L; ++lane) {
        if (!write[lane]) continue;
        const int64_t b = block.query[lane];
        evidence.residual[b] = certificate.residual[lane];
        evidence.bound[b] = certificate.bound[lane];
        evidence.converged[b] = certificate.bound[lane] <= block.queries.tol ? 1 : 0;
    }
}

// Writes the scores of the caller's nodes begin .. end - 1.
template <int L>
void write_nodes(const PprBlock<L>& block, const bool* write, int64_t begin, int64_t end, float* scores) {
    const int64_t n = block.graph.num_nodes;
    const int32_t* row_of = block.graph.row_of;
    int64_t v = begin;
    if constexpr (L >= 16) {  // transposes squares of 16 nodes by 16 lanes; unused lanes go to a spare row
        for (; v + 16 <= end; v += 16) {
            for (int64_t soon = v + 16; soon < v + 32 && soon < n; ++soon)
                for (int line = 0; line < L; line += 16)
                    __builtin_prefetch(block.result + int64_t{row_of[soon]} * L + line);
            for (int first = 0; first < L; first += 16) {
                float spare[16];
                const float* from[16];
                float* to[16];
                for (int i = 0; i < 16; ++i) {
                    const int lane = first + i;
                    from[i] = block.result + int64_t{row_of[v + i]} * L + first;
                    to[i] = write[lane] ? scores + block.query[lane] * n + v : spare;
                }
                transpose_16(from, to);
            }
        }
    }
    for (; v < end; ++v)
        for (int lane = 0; lane < L; ++lane)
            if (write[lane]) scores[block.query[lane] * n + v] = block.result[int64_t{row_of[v]} * L + lane];
}

// Writes rows of `scores` from the block's lanes, in the caller's node order.
template <int L>
void write_scores(const PprBlock<L>& block, const bool* write, float* scores) {
    parallel_for(block.num_tiles, block.queries.execution, [&](int64_t tile, int) {
        write_nodes<L>(block, write, block.tile_begin(tile), block.tile_end(tile), scores);
    });
}

// A block's lists: k + 1 hits of each lane, their number, their errors, and how far they are from being proven.
template <int L>
struct RankedLists {
    Vec<Ranked> selected;
    int64_t found[L] = {};
    NodeError error[L];
    const float* local = nullptr;  // (N, L) the part of the error that is specific to each node, or null
    double shortfall[L] = {};

    explicit RankedLists(const PprTopk* top) : selected(top == nullptr ? 0 : size_t(L) * size_t(top->k + 1)) {}

    bool is_proven(int lane) const { return shortfall[lane] < 1.0; }

    // Ranks and proves the lanes in `used`. False: no memory.
    bool rank(const PprBlock<L>& block, const PprTopk& top, const bool* used) {
        const Ranking<L> ranking{block.result, true};
        if (!select_best<L>(block, top, ranking, used, top.k + 1, selected.data(), found)) return false;
        prove(block, top, used);
        return true;
    }

    // Proves the lanes in `used` in their current ranking.
    void prove(const PprBlock<L>& block, const PprTopk& top, const bool* used) {
        double now[L];
        const Ranking<L> ranking{block.result, true};
        measure_proof<L>(block, top, ranking, used, error, local, selected.data(), found, now);
        for (int lane = 0; lane < L; ++lane)
            if (used[lane]) shortfall[lane] = now[lane];
    }
};

template <int L>
void write_topk(const PprBlock<L>& block, const bool* write, const PprCertificate<L>& certificate,
                const RankedLists<L>& lists, const PprTopk& top) {
    for (int lane = 0; lane < L; ++lane) {
        if (!write[lane]) continue;
        const int64_t b = block.query[lane], count = lists.found[lane] < top.k ? lists.found[lane] : top.k;
        const RankedList<L> list{block, lists.selected.data() + lane * (top.k + 1), lists.local, lane};
        for (int64_t i = 0; i < top.width; ++i) {
            const int64_t at = b * top.width + i;
            if (i >= count) {
                top.ids[at] = -1, top.scores[at] = -std::numeric_limits<float>::infinity();
                top.score_bounds[at] = 0.0f;
                continue;
            }
            const double own = node_error(lists.error[lane], list.local(i), list.degree(i), list.score(i));
            const double bound = own < certificate.bound[lane] ? own : certificate.bound[lane];
            top.ids[at] = list.list[i].id, top.scores[at] = list.score(i);
            top.score_bounds[at] = round_above(bound);
        }
        top.counts[b] = count;
        top.proven[b] = lists.is_proven(lane) ? 1 : 0;
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
