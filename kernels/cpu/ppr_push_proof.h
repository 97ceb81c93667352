// The proof of a local walk's list: hopfuse/ppr_push.h, PROOF. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "hopfuse/ppr_push.h"
#include "ppr_push_memory.h"
#include "ppr_push_walk.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct ScoresBefore {
    bool operator()(const Contender& a, const Contender& b) const {
        return a.score() != b.score() ? a.score() > b.score() : a.id < b.id;
    }
};

// What is returned is ordered by its float32 scores.
struct ListedBefore {
    bool operator()(const Contender& a, const Contender& b) const {
        const float first = static_cast<float>(a.score()), second = static_cast<float>(b.score());
        return first != second ? first > second : a.id < b.id;
    }
};

class PushProof {
public:
    double shortfall = infinite64();  // below 1: the list is proven
    bool is_tied = false;             // hits have equal bounds, but the graph does not show that their scores are equal

    PushProof(PushWalk& walk, const PprTopk& top, int64_t budget)
        : walk_(walk), m_(walk.memory), possible_(walk.possible_hits()), k_(std::min(top.k, possible_)),
          order_(top.prove_order), budget_(budget) {}

    // Tries to prove the list of the walk's present state.
    void attempt() {
        check_stop(walk_.queries.execution);
        shortfall = k_ == 0 ? 0.0 : infinite64(), is_tied = false;
        if (k_ == 0) return;  // an empty list is exact
        left_ = walk_.left();
        const double outside = collect();
        if (!look()) return;
        std::sort(m_.contenders.begin(), m_.contenders.end(), ScoresBefore{});
        join_twins();
        prove(outside);
    }

    // Puts the hits first, in the order of their float32 scores; returns their number.
    int64_t finish() {
        int64_t found = std::min(int64_t(m_.contenders.size()), k_);
        std::partial_sort(m_.contenders.begin(), m_.contenders.begin() + found, m_.contenders.end(), ScoresBefore{});
        std::sort(m_.contenders.begin(), m_.contenders.begin() + found, ListedBefore{});
        while (found > 0 && static_cast<float>(m_.contenders[size_t(found - 1)].score()) == 0.0f) --found;
        return found;
    }

private:
    PushWalk& walk_;
    PushMemory& m_;
    const int64_t possible_, k_;
    const bool order_;
    const int64_t budget_;
    double left_ = 0.0;  // at least ||r||_1
    double kth_ = 0.0;   // the k-th best lower bound so far, which never falls

    // What the bounds leave open of a score after steps that were taken exactly; `rest` is d to their number, plus 1.
    double width(double degree, double rest) const { return walk_.scale * rest * std::min(degree * walk_.rho, left_); }

    double apart_score(const Seed& seed) const { return walk_.scale * (1.0 - walk_.damping) * seed.share; }

    // Finds the candidates that may be in the list; returns how far the others reach.
    double collect() {
        constexpr int64_t ahead = 16;
        m_.contenders.clear(), m_.best.clear();
        for (int64_t i = 0; i < m_.hits.size; ++i) {
            if (i + ahead < m_.hits.size) walk_.prefetch(m_.hits[i + ahead]);
            const int32_t node = m_.hits[i];
            const double least = walk_.scale * (m_.estimate[node] + (1.0 - walk_.damping) * m_.residual[node]);
            m_.least[i] = least, m_.width[i] = width(walk_.degree(node), walk_.damping);
            if (least >= kth_) m_.best.push(least);
        }
        for (const Seed& seed : m_.apart) {
            if (!walk_.is_candidate(seed.node)) continue;
            m_.contenders.push_back({apart_score(seed), 0.0, seed.node, 0});
            m_.best.push(apart_score(seed));
        }
        if (m_.best.size >= k_) {
            std::nth_element(m_.best.begin(), m_.best.begin() + (k_ - 1), m_.best.end(), Descending{});
            kth_ = m_.best[k_ - 1];
        }
        double outside = 0.0;
        for (int64_t i = 0; i < m_.hits.size; ++i) {
            const Contender one{m_.least[i], m_.width[i], m_.hits[i], 0};
            if (one.least + 1.25 * one.width >= kth_) m_.contenders.push_back(one);
            else outside = std::max(outside, one.most());
        }
        for (Contender& one : m_.contenders) one.id = walk_.graph.node_of[one.node];
        const PprCandidates& all = walk_.candidates;
        if (are_all_reached()) return outside;
        const double largest = ppr_push_degree(all.largest_degree, walk_.graph.num_types, walk_.eta);
        return std::max(outside, width(largest, walk_.damping));
    }

    bool are_all_reached() const { return walk_.is_closed() || m_.hits.size == walk_.candidates.count; }

    // Reads the contenders' rows for narrower bounds. False: these are too many entries.
    bool look() {
        int64_t volume = 0, longest = 0;
        for (const Contender& one : m_.contenders) {
            volume += walk_.row_length(one.node);
            longest = std::max(longest, walk_.row_length(one.node));
        }
        const double most = PPR_PUSH_LOOK * double(walk_.entries) + PPR_PUSH_FREE_LOOK * double(k_ + 4);
        if (double(volume) > most || walk_.entries + volume > budget_) return false;
        walk_.count_look(volume, longest);
        const double d = walk_.damping;
        if (walk_.is_guided) return look_guided();
        for (Contender& one : m_.contenders) {
            const double degree = walk_.degree(one.node);
            if (degree == 0.0) continue;  // a seed without edges
            const double own = m_.residual[one.node] + d * average(one.node);
            one.least = walk_.scale * (m_.estimate[one.node] + (1.0 - d) * own), one.width = width(degree, d * d);
        }
        return true;
    }

    // (P' r)_v, from row v.
    double average(int64_t node) const {
        const PprGraph& g = walk_.graph;
        double sum = 0.0;
        for (int64_t e = g.indptr[node]; e < g.indptr[node + 1]; ++e) {
            const int32_t source = g.indices[e];
            if (!(m_.residual[source] > 0.0)) continue;
            sum += walk_.entry_weight(e) * (m_.residual[source] / walk_.degree(source));
        }
        return sum;
    }

    // Bounds of (P' r)_v / a_v with node weights: D of a source may be known in part.
    std::pair<double, double> guided_average(int64_t node) const {
        const PprGraph& g = walk_.graph;
        double least = 0.0, most = 0.0;
        for (int64_t e = g.indptr[node]; e < g.indptr[node + 1]; ++e) {
            const int32_t source = g.indices[e];
            if (!(m_.residual[source] > 0.0)) continue;
            const double flow = walk_.entry_weight(e) * m_.residual[source] * double(m_.guide[source]);
            least += flow / walk_.degree(source), most += flow / walk_.least_degree(source);
        }
        const double rounding = 2.0 * double(8 + walk_.rows) * PPR_UNIT;
        return {least * (1.0 - rounding), most * (1.0 + rounding)};
    }

    bool look_guided() {
        const double d = walk_.damping;
        for (Contender& one : m_.contenders) {
            if (walk_.degree(one.node) == 0.0) continue;  // a seed without edges
            walk_.read(one.node);
            if (!walk_.is_defined) return false;
            const double own = m_.residual[one.node], x = m_.estimate[one.node], degree = walk_.degree(one.node);
            const auto [low, high] = guided_average(one.node);
            const double weight = double(m_.guide[one.node]);
            const double least = walk_.scale * (x + (1.0 - d) * (own + d * (weight * low)));
            const double looked = walk_.scale * (x + (1.0 - d) * (own + d * (weight * high))) + width(degree, d * d);
            const double most = std::min(looked, one.least + width(degree, d));
            one.least = std::max(one.least, least);
            one.width = std::max(most - one.least, 0.0);
        }
        return true;
    }

    // The query as hopfuse/ppr_proof.h asks for it.
    struct Restarts {
        const PprQueries& queries;
        int64_t query;
        const float* guide;

        bool restarts(int64_t node) const {
            const int32_t* begin = queries.restart_node + queries.restart_indptr[query];
            const int32_t* end = queries.restart_node + queries.restart_indptr[query + 1];
            return std::binary_search(begin, end, static_cast<int32_t>(node), Ascending{});
        }
        float node_weight(int64_t node) const { return guide == nullptr ? 1.0f : guide[node]; }
    };

    bool are_twins(const Contender& a, const Contender& b) const {
        const PprGraph& g = walk_.graph;
        const QueryRows rows{g.indptr, entries_of(g.indices, g.weight), g.edge_type, nullptr, 0};
        return have_equal_scores(rows, Restarts{walk_.queries, walk_.query, walk_.is_guided ? m_.guide : nullptr},
                                 a.node, b.node, true);
    }

    // Gives contenders at the head of the list one score if the graph shows that they are equal.
    void join_twins() {
        const size_t count = m_.contenders.size(), shown = std::min(count, size_t(k_) + 1);
        for (size_t i = 0, end = 1; i < shown; i = end, end = i + 1) {
            const Contender first = m_.contenders[i];
            for (; end < count; ++end) {
                Contender& other = m_.contenders[end];
                const bool may_be_equal = other.most() >= first.least * (1.0 - PPR_WAVERS);
                if (!may_be_equal || !are_twins(first, other)) break;
                other.least = first.least, other.width = first.width;
            }
            std::sort(m_.contenders.begin() + int64_t(i), m_.contenders.begin() + int64_t(end), ScoresBefore{});
        }
    }

    // The list as hopfuse/ppr_proof.h reads it. Twice the sum of two of these errors is half the sum of the widths: the gap
    // between the bounds themselves must exceed the parts of the errors that stay.
    struct List {
        const PushProof& proof;

        const Contender& at(int64_t i) const { return proof.m_.contenders[size_t(i)]; }
        double score(int64_t i) const { return at(i).score(); }
        double local(int64_t i) const { return 0.25 * at(i).width; }
        double degree(int64_t) const { return 1.0; }
        bool are_twins(int64_t i) const { return proof.are_twins(at(i - 1), at(i)); }
    };

    void prove(double outside) {
        const int64_t count = int64_t(m_.contenders.size()), found = std::min(count, k_ + 1);
        if (found == 0) {  // nothing has been reached; without seeds among the candidates either, the list is empty
            shortfall = are_all_reached() ? 0.0 : infinite64();
            return;
        }
        const NodeError error = error_to_outlast(NodeError{0.0, walk_.rounding(), 0.0});
        const List list{*this};
        const ListProof proof = prove_list(list, k_, found, possible_, are_all_reached(), error, order_, LoneProver{});
        const bool is_lost = static_cast<float>(list.score(std::min(found, k_) - 1)) == 0.0f;
        shortfall = is_lost ? infinite64() : proof.shortfall;  // a score that float32 cannot hold is no hit
        for (int64_t i = 1; i < found && !(shortfall < infinite64()); ++i) {
            const bool are_equal = list.at(i - 1).least == list.at(i).least && list.at(i - 1).width == list.at(i).width;
            is_tied = is_tied || (are_equal && !list.are_twins(i));
        }
        if (!proof.open || is_lost) return;
        for (int64_t i = k_ + 1; i < count; ++i) {
            const bool is_tied_hit = proof.tied && list.score(i) == list.score(k_ - 1);
            if (!is_tied_hit || !are_twins(list.at(k_ - 1), list.at(i))) outside = std::max(outside, list.at(i).most());
        }
        const double reach = outside * (1.0 + 2.0 * error.relative) + 2.0 * error.flat;
        if (outside > 0.0 && !(proof.least > reach)) shortfall = PPR_OUTSIDE_SHORTFALL;
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
