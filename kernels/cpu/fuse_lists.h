// The lists of a query: ids, list values, and where its hits are written. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "hopfuse/fuse.h"
#include "rank_key.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

template <class Method>
constexpr bool is_fold = std::is_base_of_v<Fold<Method>, Method>;
template <class Method>
constexpr bool is_by_position = std::is_base_of_v<ByPosition, Method>;

inline int64_t most_of_list(const FuseArgs& args, int32_t l) { return std::min(args.lists[l].width, args.pools[l]); }

inline const float* query_weights(const FuseArgs& args, int64_t b) {
    return args.weights_shared ? args.weights : args.weights + b * args.num_lists;
}

// What is the same for all queries of a call.
struct ListPlan {
    size_t most = 0;     // largest number of entries of a query
    Vec<size_t> begin;   // where a list's values start
    Vec<float> values;   // by position, if they depend on nothing else; otherwise empty
    bool terms = false;  // whether `values` already are the terms of a fold

    explicit ListPlan(const FuseArgs& args) : begin(size_t(args.num_lists)) {
        for (int32_t l = 0; l < args.num_lists; ++l) begin[size_t(l)] = most, most += size_t(most_of_list(args, l));
    }
};

// One query's lists.
class QueryLists {
public:
    QueryLists(const FuseArgs& args, const ListPlan& plan)
        : args_(args), plan_(plan), counts_(plan.begin.size()), ids_(plan.begin.size()), own_(plan.most) {}

    // Reads the lists of query b: calibrates the scores and computes the list values.
    void read(int64_t b) {
        entries_ = 0, owned_ = plan_.values.empty();
        for (int32_t l = 0; l < args_.num_lists; ++l) {
            const FuseList& list = args_.lists[l];
            const int64_t row = b * list.width, n = std::min(list.counts[b], args_.pools[l]);
            counts_[size_t(l)] = n, ids_[size_t(l)] = list.ids + row;
            entries_ += n;
            if (n > 0 && owned_) calibrate_list(Alone{}, list.scores + row, n, l, args_.calibration, own(l));
        }
        if (owned_) make_values();
    }

    // Converts list values to the terms of a fold.
    template <class Method>
    void make_terms(const Union& of) {
        if (plan_.terms) return;
        for (int32_t l = 0; l < of.lists; ++l) {
            const float* const value = values(l);
            float* const term = own(l);
            for (int64_t i = 0; i < count(l); ++i) term[i] = Method::term(value[i], l, of);
        }
        owned_ = true;
    }

    int64_t entries() const { return entries_; }  // in all lists
    const int64_t* counts() const { return counts_.data(); }
    int64_t count(int32_t l) const { return counts_[size_t(l)]; }
    const int64_t* ids(int32_t l) const { return ids_[size_t(l)]; }
    const float* values(int32_t l) const { return (owned_ ? own_ : plan_.values).data() + plan_.begin[size_t(l)]; }
    float term(int32_t l, int64_t i) const { return values(l)[i]; }

private:
    float* own(int32_t l) { return own_.data() + plan_.begin[size_t(l)]; }

    void make_values() {
        float distance = 0.0f;
        if (asks_distance(args_.method, args_.option)) distance = mean_wasserstein(Alone{}, *this, args_.num_lists);
        for (int32_t l = 0; l < args_.num_lists; ++l)
            list_values(Alone{}, args_.method, count(l), l, args_.option, distance, own(l));
    }

    const FuseArgs& args_;
    const ListPlan& plan_;
    Vec<int64_t> counts_;
    Vec<const int64_t*> ids_;
    Vec<float> own_;
    int64_t entries_ = 0;
    bool owned_ = true;  // the values belong to this query alone
};

inline void write_hits(const FuseArgs& args, int64_t b, BestKeys& best) {
    int64_t count;
    const RankKey* const ranked = best.rank(count);
    for (int64_t i = 0; i < args.k; ++i) {
        args.ids[b * args.k + i] = i < count ? ranked[i].id() : -1;
        args.scores[b * args.k + i] = i < count ? ranked[i].score() : -std::numeric_limits<float>::infinity();
    }
    args.counts[b] = count;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
