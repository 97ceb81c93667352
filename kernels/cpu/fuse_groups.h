// Fusion by methods that need all entries of a document together. Included once per instruction set.
#pragma once

#include "fuse_lists.h"
#include "fuse_table.h"
#include "kendall.h"
#include "majority.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A thread's buffers for one query, allocated before the loop.
struct GroupRoom {
    QueryLists lists;
    DocumentTable<int32_t> table;  // document numbers
    Vec<int32_t> document;         // of each entry, list after list
    Vec<int32_t> end;              // of each document's entries
    Vec<Entry> entries;            // document after document, each in list order
    Kendall kendall;
    Majorities majorities;
    BestKeys best;

    GroupRoom(const FuseArgs& args, const ListPlan& plan)
        : lists(args, plan), table(plan.most), document(plan.most), end(plan.most), entries(plan.most),
          kendall(asks_concordance(args.method, args.option) ? plan.most : 0),
          majorities(args.method == FusionMethod::condorcet ? plan.most : 0, size_t(args.num_lists)),
          best(args.k, plan.most) {}
};

// The entries of all lists, grouped by document.
inline void group_entries(int32_t num_lists, GroupRoom& room) {
    room.table.clear();
    size_t at = 0;
    for (int32_t l = 0; l < num_lists; ++l)
        for (int64_t i = 0; i < room.lists.count(l); ++i, ++at) {
            const int64_t id = room.lists.ids(l)[i];
            auto& slot = room.table.open(id, int32_t(room.table.count()));
            room.table.hold(slot);
            room.document[at] = slot.value;
        }
    int32_t begin = 0;
    for (int64_t document = 0; document < room.table.count(); ++document) {
        room.end[size_t(document)] = begin;
        begin += room.table.held(room.table[document]);
    }
    at = 0;
    for (int32_t l = 0; l < num_lists; ++l)
        for (int64_t i = 0; i < room.lists.count(l); ++i, ++at) {
            int32_t& place = room.end[size_t(room.document[at])];
            room.entries[size_t(place++)] = {room.lists.ids(l)[i], l, room.lists.values(l)[i]};
        }
}

// How far the lists agree, over the documents that each two of them share.
inline Concordance concordance(int32_t num_lists, GroupRoom& room) {
    Concordance total{0, 0};
    size_t begin = 0;  // of list a's entries
    for (int32_t a = 0; a < num_lists; ++a) {
        const size_t count = size_t(room.lists.count(a));
        for (int32_t b = a + 1; b < num_lists; ++b) {
            room.kendall.clear();
            for (size_t i = 0; i < count; ++i) {
                const size_t document = size_t(room.document[begin + i]);
                const int32_t last = room.end[document];
                int32_t other = document == 0 ? 0 : room.end[document - 1];
                while (other < last && room.entries[size_t(other)].list < b) ++other;
                if (other < last && room.entries[size_t(other)].list == b)
                    room.kendall.push(room.lists.values(a)[i], room.entries[size_t(other)].value);
            }
            const Concordance pair = room.kendall.count();
            total.balance += pair.balance;
            total.pairs += pair.pairs;
        }
        begin += count;
    }
    return total;
}

// Replaces the value of each document's first entry by the score that condorcet.h reads there.
inline void count_majorities(const FuseArgs& args, const float* weights, GroupRoom& room) {
    const int32_t found = int32_t(room.table.count());
    room.majorities.start(found, args.num_lists, weights);
    for (int32_t document = 0, at = 0; document < found; ++document)
        for (; at < room.end[size_t(document)]; ++at) {
            const Entry& entry = room.entries[size_t(at)];
            room.majorities.rank(document, entry.list, entry.value);
        }
    for (int32_t document = 0, begin = 0; document < found; ++document) {
        room.entries[size_t(begin)].value = room.majorities.score(document);
        begin = room.end[size_t(document)];
    }
}

template <class Method>
void fuse_query(const FuseArgs& args, int64_t b, GroupRoom& room) {
    const float* const weights = query_weights(args, b);
    room.lists.read(b);
    group_entries(args.num_lists, room);
    if (args.method == FusionMethod::condorcet) count_majorities(args, weights, room);
    const bool asks = asks_concordance(args.method, args.option);
    const Concordance total = asks ? concordance(args.num_lists, room) : Concordance{0, 0};
    const float theta = copula_theta(args.method, total, args.option);
    const int64_t found = room.table.count();
    const Union of{args.num_lists, found, room.lists.counts(), 1, args.pools, weights, args.option, theta};
    room.best.clear();
    int32_t begin = 0;
    for (int64_t document = 0; document < found; ++document) {
        const Entry* const entry = room.entries.data() + begin;
        const int held = room.end[size_t(document)] - begin;
        room.best.push(fused_score<Method>(entry, held, of, args.finish), entry->id);
        begin += held;
    }
    write_hits(args, b, room.best);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
