// Fusion by folds: a table accumulates the documents' scores list by list, and in long lists only documents that can be hits
// are visited. Included once per instruction set.
#pragma once

#include <algorithm>

#include "fuse_lists.h"
#include "fuse_table.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A thread's buffers for one query, allocated before the loop.
struct FoldRoom {
    QueryLists lists;
    DocumentTable<float> table;  // scores so far
    BestKeys best;
    Vec<uint64_t> filter;  // one bit per value of the upper bits of an id's hash

    FoldRoom(const FuseArgs& args, const ListPlan& plan)
        : lists(args, plan), table(plan.most), best(args.k, plan.most), filter(size_t{1} << (FILTER_BITS - 6)) {}

    static constexpr int FILTER_BITS = 16;
};

// Adds the first n entries of list l to the scores of their documents.
template <class Method>
void fold_list(const QueryLists& lists, int32_t l, int64_t n, const Union& of, DocumentTable<float>& table) {
    const int64_t* const ids = lists.ids(l);
    const float* const terms = lists.values(l);
    for (int64_t i = 0; i < n; ++i) {
        auto& slot = table.open(ids[i], Method::start());
        slot.value = Method::add(slot.value, terms[i], l, of);
        table.hold(slot);
    }
}

// Adds the entries of all lists whose documents are in the table. The filter rejects most others without a table access.
template <class Method>
void fold_opened(const Union& of, FoldRoom& room) {
    const auto bit = [](uint64_t hash) { return hash >> (64 - FoldRoom::FILTER_BITS); };
    std::fill(room.filter.begin(), room.filter.end(), 0);
    for (int64_t document = 0; document < room.table.count(); ++document) {
        auto& slot = room.table[document];
        const uint64_t at = bit(room.table.hash(slot.id));
        room.filter[at / 64] |= uint64_t{1} << (at % 64);
        room.table.release(slot, Method::start());
    }
    for (int32_t l = 0; l < of.lists; ++l) {
        const int64_t* const ids = room.lists.ids(l);
        const float* const terms = room.lists.values(l);
        for (int64_t i = 0; i < room.lists.count(l); ++i) {
            const uint64_t at = bit(room.table.hash(ids[i]));
            if (((room.filter[at / 64] >> (at % 64)) & 1) == 0) continue;
            auto* const slot = room.table.find(ids[i]);
            if (slot == nullptr) continue;
            slot->value = Method::add(slot->value, terms[i], l, of);
            room.table.hold(*slot);
        }
    }
}

// The best documents in the table, from the entries added so far.
template <class Method>
void rank_opened(const FuseArgs& args, const Union& of, FoldRoom& room) {
    room.best.clear();
    for (int64_t document = 0; document < room.table.count(); ++document) {
        const auto& slot = room.table[document];
        const int held = room.table.held(slot);
        const float score = finished_score(Method::finish(slot.value, held, of), held, slot.id, args.finish);
        room.best.push(score, slot.id);
    }
}

inline int64_t entries_above(const QueryLists& lists, int64_t depth, int32_t num_lists) {
    int64_t entries = 0;
    for (int32_t l = 0; l < num_lists; ++l) entries += std::min(depth, lists.count(l));
    return entries;
}

// Whether unseen_bound() holds: the method is increasing, and no list's terms are.
template <class Method>
bool is_bounded(const QueryLists& lists, const Union& of) {
    bool bounded = Method::rises(of);
    for (int32_t l = 0; l < of.lists && bounded; ++l) {
        const float* const terms = lists.values(l);
        const int64_t n = lists.count(l);
        int rising = 0;
        for (int64_t i = 1; i < n; ++i) rising |= !(terms[i - 1] >= terms[i]);
        bounded = rising == 0 && (n == 0 || terms[n - 1] >= Method::least_term());
    }
    return bounded;
}

// The first depth, from `depth` on, at which no unseen document can reach `score`; the bound never grows.
template <class Method>
int64_t sure_depth(const QueryLists& lists, int64_t depth, float score, const Union& of, const Finish& finish) {
    int64_t end = depth;
    const auto is_sure = [&](int64_t at) { return unseen_bound<Method>(lists, at, of, finish) < score; };
    while (end < lists.entries() && !is_sure(end)) depth = end + 1, end *= 2;
    while (depth < end) {
        const int64_t middle = depth + (end - depth) / 2;
        if (is_sure(middle)) end = middle;
        else depth = middle + 1;
    }
    return end;
}

// The threshold algorithm: opens documents from the tops of the lists until no other can be a hit. It opens at most a
// quarter of all entries while it is unknown whether they suffice, and at most half when it is known. Beyond that, or where
// no bound holds, it returns false and the table's content is unspecified.
template <class Method>
bool fold_tops(const FuseArgs& args, const Union& of, FoldRoom& room) {
    const QueryLists& lists = room.lists;
    const auto is_below = [&](int64_t depth, int64_t part) {
        return part * entries_above(lists, depth, of.lists) < lists.entries();
    };
    int64_t depth = 2 * args.k, tried = depth;
    if (!is_below(depth, 4) || !is_bounded<Method>(lists, of)) return false;
    while (is_below(tried, 4)) {
        room.table.clear();
        for (int32_t l = 0; l < of.lists; ++l)
            fold_list<Method>(lists, l, std::min(depth, lists.count(l)), of, room.table);
        rank_opened<Method>(args, of, room);
        const RankKey last = room.best.last();
        const int64_t sure =
            last.bits == 0 ? lists.entries() : sure_depth<Method>(lists, depth, last.score(), of, args.finish);
        if (sure == depth) return fold_opened<Method>(of, room), true;
        if (is_below(sure, 2)) depth = sure;
        else depth = tried = 4 * tried;
    }
    return false;
}

template <class Method>
void fuse_query(const FuseArgs& args, int64_t b, FoldRoom& room) {
    const Union of{args.num_lists, 0, room.lists.counts(), 1, args.pools, query_weights(args, b), args.option, 1.0f};
    room.lists.read(b);
    room.lists.make_terms<Method>(of);
    if (!fold_tops<Method>(args, of, room)) {
        room.table.clear();
        for (int32_t l = 0; l < of.lists; ++l) fold_list<Method>(room.lists, l, room.lists.count(l), of, room.table);
    }
    rank_opened<Method>(args, of, room);
    write_hits(args, b, room.best);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
