// Rescores candidates row by row: a row is read once for all queries that have it. Included once per instruction set.
#pragma once

#include <algorithm>

#include "dense_blocks.h"
#include "dense_rows.h"
#include "dense_search.h"
#include "threads.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct HigherUpper {
    bool operator()(const Candidate& a, const Candidate& b) const {
        return a.upper > b.upper || (a.upper == b.upper && a.row < b.row);
    }
};

// A row, a query that has it as a candidate (its place among the chosen queries), and the score.
struct WantedRow {
    int64_t row;
    int32_t query;
    float score;
};

struct EarlierRow {
    bool operator()(const WantedRow& a, const WantedRow& b) const {
        return a.row < b.row || (a.row == b.row && a.query < b.query);
    }
};

template <class Row>
class Rescoring {
public:
    Rescoring(const Search& search, const Vec<int64_t>& chosen)
        : search_(search), chosen_(chosen), norms_(chosen.size()), found_(chosen.size()) {
        if (!search.corpus.vectors.cosine) return;
        for (size_t i = 0; i < chosen.size(); ++i) norms_[i] = search.query_norm(chosen[i]);
    }

    // Scores candidates begin .. end of each query and adds them to the query's best.
    template <class Range>
    void score(const CandidateList* candidates, const Range& range) {
        wanted_.clear();
        for (size_t i = 0; i < chosen_.size(); ++i) {
            const auto [begin, end] = range(i);
            for (int64_t c = begin; c < end; ++c) wanted_.push_back({candidates[i].rows[c].row, int32_t(i), 0.0f});
        }
        std::sort(wanted_.begin(), wanted_.end(), EarlierRow{});
        constexpr int64_t together = 256;
        const int64_t total = int64_t(wanted_.size());
        parallel_for((total + together - 1) / together, 1, search_.queries.execution,
                     [&](int64_t part, int) { score_wanted(part * together, std::min((part + 1) * together, total)); });
        for (const WantedRow& w : wanted_) found_[size_t(w.query)].push_back({w.score, w.row});
    }

    Vec<Ranked>& found(size_t i) { return found_[i]; }

private:
    void score_wanted(int64_t begin, int64_t end) {
        const DenseVectors& v = search_.corpus.vectors;
        for (int64_t i = begin; i < end;) {
            const int64_t row = wanted_[size_t(i)].row;
            const float* queries[ROW_QUERIES];
            int count = 0;
            for (; count < ROW_QUERIES && i + count < end && wanted_[size_t(i + count)].row == row; ++count)
                queries[count] = search_.query(chosen_[size_t(wanted_[size_t(i + count)].query)]);
            const int64_t soon = i + count < end ? wanted_[size_t(i + count)].row : row;
            alignas(64) float sums[(ROW_QUERIES + 3) * 16] = {};
            row_sums<Row, false>(count, row_of<Row>(v, row), QueriesApart{queries}, v.dim,
                                 row_bytes<Row>(v) * (soon - row), sums);
            for (int j = 0; j < count; ++j) {
                WantedRow& w = wanted_[size_t(i + j)];
                w.score = search_.score(add_tree(F<16>::load(sums + j * 16)), norms_[size_t(w.query)], row);
            }
            i += count;
        }
    }

    const Search& search_;
    const Vec<int64_t>& chosen_;
    Vec<float> norms_;
    Vec<Vec<Ranked>> found_;
    Vec<WantedRow> wanted_;
};

// As rescore: the k-th exact score of the most promising rows rules out most others.
template <class Row>
void rescore_lists(const Search& search, const Vec<int64_t>& chosen, CandidateList* candidates) {
    const int64_t k = search.queries.k, batch = int64_t(chosen.size());
    const Execution& execution = search.queries.execution;
    Rescoring<Row> rescoring(search, chosen);
    const auto first = [&](size_t i) { return std::min(candidates[i].count, k); };
    parallel_for(batch, 1, execution, [&](int64_t at, int) {
        const CandidateList& list = candidates[at];
        std::nth_element(list.rows, list.rows + first(size_t(at)), list.rows + list.count, HigherUpper{});
    });
    rescoring.score(candidates, [&](size_t i) { return std::pair{int64_t{0}, first(i)}; });
    parallel_for(batch, 1, execution, [&](int64_t at, int) {
        CandidateList& list = candidates[at];
        const Vec<Ranked>& found = rescoring.found(size_t(at));
        if (int64_t(found.size()) < k) return;
        const float least = std::min_element(found.begin(), found.end(), [](const Ranked& a, const Ranked& b) {
                                return a.score < b.score;
                            })->score;
        const auto is_below = [&](const Candidate& c) { return c.upper < least; };
        list.count = std::remove_if(list.rows + k, list.rows + list.count, is_below) - list.rows;
    });
    rescoring.score(candidates, [&](size_t i) { return std::pair{first(i), candidates[i].count}; });
    parallel_for(batch, 1, execution, [&](int64_t at, int) {
        Vec<Ranked>& found = rescoring.found(size_t(at));
        const int64_t count = int64_t(found.size());
        search.write(chosen[size_t(at)], found.data(), rank_best(found.data(), count, k), count);
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
