// Selects each lane's best nodes and proves that they are the best. Included once per instruction set.
#pragma once

#include <limits>

#include "hopfuse/ppr_certificate.h"
#include "hopfuse/ppr_proof.h"
#include "ppr_block.h"
#include "topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The scores that are ranked: `state` is y (then x = max(y, 0) deg) or, with `final`, x^ itself. Node weights are part of
// the error bound in both cases.
template <int L>
struct Ranking {
    const float* state;
    bool final;
};

template <int L>
HF_INLINE F<L> ranked_scores(const PprBlock<L>& block, const Ranking<L>& ranking, int64_t row) {
    const F<L> value = F<L>::load(ranking.state + row * L);
    return ranking.final ? value : F<L>::mul(F<L>::max(value, F<L>::zero()), node_weight32<L>(block, row));
}

template <int L>
HF_INLINE float ranked_score(const PprBlock<L>& block, const Ranking<L>& ranking, int64_t row, int lane) {
    float scores[L];
    F<L>::store(scores, ranked_scores<L>(block, ranking, row));
    return scores[lane];
}

inline int64_t candidate_count(const PprGraph& graph, const PprTopk& top) {
    return top.candidates == nullptr ? graph.num_nodes : top.num_candidates;
}

inline int64_t candidate_row(const PprGraph& graph, const PprTopk& top, int64_t i) {
    return top.candidates == nullptr ? i : row_of_node(graph, top.candidates[i]);
}

// A lower bound of each lane's `want` best scores: the least score of any `want` candidates. On entry selected (L, want) and
// found (L,) are from an earlier ranking.
template <int L>
void scores_to_reach(const PprBlock<L>& block, const Ranking<L>& ranking, const bool* active, int64_t want,
                     const Ranked* selected, const int64_t* found, float* least) {
    for (int lane = 0; lane < L; ++lane) {
        least[lane] = std::numeric_limits<float>::infinity();
        if (!active[lane]) continue;
        for (int64_t i = 0; i < found[lane]; ++i) {
            const int64_t row = block.graph.row_of[selected[lane * want + i].id];
            const float score = ranked_score<L>(block, ranking, row, lane);
            least[lane] = score < least[lane] ? score : least[lane];
        }
        const bool is_known = found[lane] == want && least[lane] > 0.0f;
        if (!is_known) least[lane] = std::numeric_limits<float>::denorm_min();
    }
}

// Each lane's best `want` candidates with score > 0, in order: selected (L, want), found (L,). If these hold an earlier
// ranking on entry, that saves work.
template <int L>
bool select_best(const PprBlock<L>& block, const PprTopk& top, const Ranking<L>& ranking, const bool* active,
                 int64_t want, Ranked* selected, int64_t* found) {
    const Execution& execution = block.queries.execution;
    const int threads = execution.threads;
    const int64_t candidates = candidate_count(block.graph, top);
    const int64_t room = TopkBuffer::room(want, candidates / threads + 1);  // a thread does not see more
    Ranked* memory = block.work.template reserve<Ranked>(slot_topk, size_t(threads) * L * room);
    Ranked* merged = block.work.template reserve<Ranked>(slot_topk_merge, size_t(threads) * L * room);
    if (memory == nullptr || merged == nullptr) return false;
    float least[L];
    scores_to_reach<L>(block, ranking, active, want, selected, found, least);
    int64_t* sizes = block.work.template reserve<int64_t>(slot_selected, size_t(threads) * L);
    if (sizes == nullptr) return false;
    parallel_for(threads, 1, execution, [&](int64_t part, int) {
        TopkBuffer best[L];
        float threshold[L];
        for (int lane = 0; lane < L; ++lane) {
            best[lane] = TopkBuffer(memory + (part * L + lane) * room, want, candidates / threads + 1, least[lane]);
            threshold[lane] = least[lane];
        }
        const int64_t begin = candidates * part / threads, end = candidates * (part + 1) / threads;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = candidate_row(block.graph, top, i);
            const F<L> x = ranked_scores<L>(block, ranking, row);
            uint32_t hits = F<L>::ge(x, F<L>::load(threshold));
            if (hits == 0) continue;
            float score[L];
            F<L>::store(score, x);
            for (; hits != 0; hits &= hits - 1) {
                const int lane = __builtin_ctz(hits);
                best[lane].push(score[lane], block.graph.node_of[row]);
                threshold[lane] = best[lane].threshold();
            }
        }
        for (int lane = 0; lane < L; ++lane) {
            best[lane].shrink();
            sizes[part * L + lane] = best[lane].size();
        }
    });
    parallel_for(L, 1, execution, [&](int64_t lane, int) {
        if (!active[lane]) return;
        Ranked* all = merged + lane * threads * room;
        int64_t total = 0;
        for (int part = 0; part < threads; ++part) {
            const Ranked* from = memory + (part * L + lane) * room;
            for (int64_t i = 0; i < sizes[part * L + lane]; ++i) all[total++] = from[i];
        }
        found[lane] = rank_best(all, total, want);
        for (int64_t i = 0; i < found[lane]; ++i) selected[lane * want + i] = all[i];
    });
    return true;
}

// The end of a lane's list: the score of its last hit, which hit that is, and whether other nodes also have that score.
struct ListEnd {
    float score;
    int64_t id, row;
    bool tied;
};

// The graph's entries that count for a lane.
template <int L>
QueryRows query_rows(const PprBlock<L>& block, int lane) {
    const PprGraph& g = block.graph;
    return {g.indptr, entries_of(g.indices, g.weight), g.edge_type,
            block.mask32 == nullptr ? nullptr : block.mask32 + lane, L};
}

// A lane's query in the form that hopfuse/ppr_proof.h reads.
template <int L>
struct LaneQuery {
    const PprBlock<L>& block;
    int lane;

    bool restarts(int64_t row) const { return block.restarts(row, lane); }
    float node_weight(int64_t row) const {
        return block.attraction == nullptr ? 1.0f : attraction_row<L>(block, row)[lane];
    }
};

// Whether the graph shows that the scores of two rows are equal in a lane.
template <int L>
bool rows_are_twins(const PprBlock<L>& block, int64_t row, int64_t other, int lane) {
    const LaneQuery<L> query{block, lane};
    return have_equal_scores(query_rows<L>(block, lane), query, row, other, block.chebyshev);
}

// The lanes in which a row with these scores is an empty place: its score is not above 0 and cannot be.
template <int L>
uint32_t lanes_without_mass(const PprBlock<L>& block, int64_t row, F<L> scores) {
    if (block.mask32 == nullptr && block.graph.indptr[row] < block.graph.indptr[row + 1]) return 0;
    const uint32_t hits = F<L>::ge(scores, F<L>::all(std::numeric_limits<float>::denorm_min()));
    uint32_t empty = ~hits & (~uint32_t{0} >> (32 - L));
    for (uint32_t left = empty; left != 0; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const bool may_hold = block.restarts(row, lane) || has_entries(query_rows<L>(block, lane), row);
        if (may_hold) empty &= ~(uint32_t{1} << lane);
    }
    return empty;
}

// Keeps the lanes in which every candidate that is not an empty place has a score above 0.
template <int L>
void find_complete(const PprBlock<L>& block, const PprTopk& top, const Ranking<L>& ranking, bool* complete) {
    uint32_t left = 0;
    for (int lane = 0; lane < L; ++lane) left |= uint32_t{complete[lane] ? 1u : 0u} << lane;
    const int64_t candidates = candidate_count(block.graph, top);
    const F<L> least = F<L>::all(std::numeric_limits<float>::denorm_min());
    for (int64_t i = 0; i < candidates && left != 0; ++i) {
        const int64_t row = candidate_row(block.graph, top, i);
        const F<L> scores = ranked_scores<L>(block, ranking, row);
        left &= F<L>::ge(scores, least) | lanes_without_mass<L>(block, row, scores);
    }
    for (int lane = 0; lane < L; ++lane) complete[lane] = ((left >> lane) & 1u) != 0;
}

// Each lane's largest x_v + 2 e_v without its term 2 relative x_v, at least 0, over candidates with x_v below its list's
// end. Infinity if a candidate has the score of the last hit but is not its twin; minus infinity if all others are empty
// places.
template <int L>
void largest_outside(const PprBlock<L>& block, const PprTopk& top, const Ranking<L>& ranking, const ListEnd* list_end,
                     const NodeError* error, const float* local, float* outside) {
    const Execution& execution = block.queries.execution;
    const int threads = execution.threads;
    const int64_t candidates = candidate_count(block.graph, top);
    constexpr float denorm = std::numeric_limits<float>::denorm_min();
    float cut[L], per_degree[L], flat[L];
    bool tied = false;
    for (int lane = 0; lane < L; ++lane) {
        cut[lane] = list_end[lane].score;
        tied = tied || list_end[lane].tied;
        per_degree[lane] = round_above(2.0 * error[lane].per_degree);
        flat[lane] = round_above(2.0 * error[lane].flat);
    }
    struct Reach {
        float v[L];
    };
    Vec<Reach> best(size_t(threads), Reach{});
    parallel_for(threads, 1, execution, [&](int64_t part, int) {
        const int64_t begin = candidates * part / threads, end = candidates * (part + 1) / threads;
        F<L> mine = F<L>::all(-infinite32());
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = candidate_row(block.graph, top, i);
            const F<L> x = ranked_scores<L>(block, ranking, row);
            F<L> share = F<L>::load(per_degree);
            if (block.attraction != nullptr)
                share = F<L>::fma(share, F<L>::load(attraction_row<L>(block, row)), F<L>::all(denorm));
            if (local != nullptr)
                share = F<L>::fma(F<L>::all(static_cast<float>(2.0 * PPR_NEAR)), F<L>::load(local + row * L), share);
            const F<L> bounded = F<L>::fma(node_weight32<L>(block, row), share, x);
            const F<L> reach = F<L>::max(F<L>::add(bounded, F<L>::load(flat)), F<L>::zero());
            const uint32_t inside = F<L>::ge(x, F<L>::load(cut));
            uint32_t aside = inside | lanes_without_mass<L>(block, row, x);
            if (aside == 0) {
                mine = F<L>::max(mine, reach);
                continue;
            }
            float values[L];
            F<L>::store(values, reach);
            for (; aside != 0; aside &= aside - 1) {
                const int lane = __builtin_ctz(aside);
                const ListEnd& last = list_end[lane];
                const bool shares = tied && last.tied && ((inside >> lane) & 1u) != 0 &&
                                    block.graph.node_of[row] > last.id &&
                                    !(ranked_score<L>(block, ranking, row, lane) > last.score);
                values[lane] = shares && !rows_are_twins<L>(block, row, last.row, lane) ? infinite32() : -infinite32();
            }
            mine = F<L>::max(mine, F<L>::load(values));
        }
        F<L>::store(best[size_t(part)].v, mine);
    });
    for (int lane = 0; lane < L; ++lane) {
        float most = -infinite32();
        for (int part = 0; part < threads; ++part) {
            const float value = best[size_t(part)].v[lane];
            most = value > most ? value : most;
        }
        outside[lane] = most;
    }
}

// A lane's list in the form that hopfuse/ppr_proof.h reads.
template <int L>
struct RankedList {
    const PprBlock<L>& block;
    const Ranked* list;
    const float* locals;  // (N, L) or null
    int lane;

    float score(int64_t i) const { return list[i].score; }
    int64_t row(int64_t i) const { return block.graph.row_of[list[i].id]; }
    double weight(int64_t row) const {
        return block.attraction == nullptr ? 1.0 : static_cast<double>(attraction_row<L>(block, row)[lane]);
    }
    double local(int64_t i) const {
        return locals == nullptr ? 0.0 : PPR_NEAR * static_cast<double>(locals[row(i) * L + lane]) / weight(row(i));
    }
    double degree(int64_t i) const {
        const int64_t row = this->row(i);
        return block.unscale64 == nullptr ? 1.0 : weight(row) * block.unscale64[block.per_lane ? row * L + lane : row];
    }
    bool are_twins(int64_t i) const { return rows_are_twins<L>(block, row(i - 1), row(i), lane); }
};

// How far the set and order of each lane's first k of `selected` (k + 1 each) are from being proven. `local`: (N, L) the
// part of the error that is specific to each node, or null.
template <int L>
void measure_proof(const PprBlock<L>& block, const PprTopk& top, const Ranking<L>& ranking, const bool* active,
                   const NodeError* stated, const float* local, const Ranked* selected, const int64_t* found,
                   double* shortfall) {
    if (top.k == 0) {  // an empty list is exact
        for (int lane = 0; lane < L; ++lane) shortfall[lane] = 0.0;
        return;
    }
    const int64_t want = top.k + 1, candidates = candidate_count(block.graph, top);
    ListEnd list_end[L];
    NodeError error[L];
    double least[L];
    bool open[L], complete[L], any = false;
    for (int lane = 0; lane < L; ++lane) complete[lane] = active[lane] && found[lane] < top.k;
    find_complete<L>(block, top, ranking, complete);
    for (int lane = 0; lane < L; ++lane) {
        const RankedList<L> list{block, selected + lane * want, local, lane};
        error[lane] = error_to_outlast(stated[lane]);
        const ListProof proof = active[lane] ? prove_list(list, top.k, found[lane], candidates, complete[lane],
                                                          error[lane], top.prove_order, LoneProver{})
                                             : ListProof{infinite64(), 0.0, false, false};
        shortfall[lane] = proof.shortfall;
        least[lane] = proof.least;
        open[lane] = proof.open;
        list_end[lane] = {infinite32(), 0, 0, false};
        if (open[lane])
            list_end[lane] = {list.score(top.k - 1), list.list[top.k - 1].id, list.row(top.k - 1), proof.tied};
        else error[lane] = NodeError{1.0, 1.0, 0.0};  // not read; 0 rounded up would be a slow subnormal number
        any = any || open[lane];
    }
    if (!any) return;
    float outside[L];
    largest_outside<L>(block, top, ranking, list_end, error, local, outside);
    for (int lane = 0; lane < L; ++lane)
        if (open[lane] && !(least[lane] > outside_reach(outside[lane], error[lane])))
            shortfall[lane] = PPR_OUTSIDE_SHORTFALL;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
