// calibrate_f32 and fuse_f32 for one instruction set: threads over queries. Contracts: hopfuse/calibrate.h,
// hopfuse/fuse.h.
#include "hopfuse/fuse.h"

#include <algorithm>
#include <limits>
#include <new>

#include "kendall.h"
#include "kernels.h"
#include "majority.h"
#include "threads.h"
#include "topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Where a document's number is looked up by its id: open addressing, at most half full. A slot counts only where its
// stamp is the query's own, so nothing is cleared between queries.
class Documents {
public:
    explicit Documents(size_t most) {
        size_t slots = 16;
        while (slots < 2 * most) slots *= 2;
        slots_.resize(slots);
        ids_.resize(most);
        mask_ = slots - 1;
    }

    void clear() {
        count_ = 0;
        if (++stamp_ != 0) return;
        std::fill(slots_.begin(), slots_.end(), Slot{});
        stamp_ = 1;
    }

    // The number of a document, in the order of their first entries; `is_new` where this is the first.
    int32_t find(int64_t id, bool& is_new) {
        size_t at = mix(static_cast<uint64_t>(id)) & mask_;
        while (slots_[at].stamp == stamp_) {
            const int32_t document = slots_[at].document;
            if (ids_[size_t(document)] == id) {
                is_new = false;
                return document;
            }
            at = (at + 1) & mask_;
        }
        slots_[at] = {stamp_, count_};
        ids_[size_t(count_)] = id;
        is_new = true;
        return count_++;
    }

    int32_t count() const { return count_; }
    int64_t id(int32_t document) const { return ids_[size_t(document)]; }

private:
    struct Slot {
        uint32_t stamp = 0;
        int32_t document = 0;
    };

    // Stafford's variant 13 of MurmurHash3's finaliser (as in SplitMix64): no pattern of ids that occurs meets in it.
    static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }

    Vec<Slot> slots_;
    Vec<int64_t> ids_;
    size_t mask_;
    uint32_t stamp_ = 0;
    int32_t count_ = 0;
};

size_t most_entries(const FuseArgs& args) {
    size_t total = 1;
    for (int32_t l = 0; l < args.num_lists; ++l) total += size_t(args.lists[l].width);
    return total;
}

// A thread's own room for one query, made before the loop so that nothing allocates inside it.
struct Scratch {
    Documents documents;
    Vec<int32_t> document, held;  // of each entry, and of each document
    Vec<float> value;             // of each entry, list after list
    Vec<Entry> entries;           // document after document, each in list order
    Vec<Ranked> ranked;
    Vec<int64_t> counts;  // of each list
    Kendall kendall;
    Majorities majorities;

    Scratch(const FuseArgs& args, size_t most)
        : documents(most), document(most), held(most + 1), value(most), entries(most), ranked(most),
          counts(size_t(args.num_lists)), kendall(asks_concordance(args.method, args.option) ? most : 0),
          majorities(args.method == FusionMethod::condorcet ? most : 0, size_t(args.num_lists)) {}
};

// The lists as mean_wasserstein reads them.
struct Calibrated {
    const Scratch& scratch;

    int64_t count(int32_t list) const { return scratch.counts[size_t(list)]; }
    const float* values(int32_t list) const {
        size_t at = 0;
        for (int32_t l = 0; l < list; ++l) at += size_t(count(l));
        return scratch.value.data() + at;
    }
};

// All calibrated scores to list values.
void make_list_values(const FuseArgs& args, Scratch& scratch) {
    float distance = 0.0f;
    if (asks_distance(args.method, args.option))
        distance = mean_wasserstein(Alone{}, Calibrated{scratch}, args.num_lists);
    size_t at = 0;
    for (int32_t l = 0; l < args.num_lists; ++l) {
        const int64_t n = scratch.counts[size_t(l)];
        list_values(Alone{}, args.method, n, l, args.option, distance, scratch.value.data() + at);
        at += size_t(n);
    }
}

// The entries of all lists of query b, grouped by document: document i's end at held[i].
void gather_entries(const FuseArgs& args, int64_t b, Scratch& scratch) {
    Documents& documents = scratch.documents;
    documents.clear();
    size_t used = 0;
    for (int32_t l = 0; l < args.num_lists; ++l) {
        const FuseList& list = args.lists[l];
        const int64_t row = b * list.width, n = std::min(list.counts[b], args.pools[l]);
        scratch.counts[size_t(l)] = n;
        if (n > 0) calibrate_list(Alone{}, list.scores + row, n, l, args.calibration, scratch.value.data() + used);
        for (int64_t i = 0; i < n; ++i) {
            bool is_new;
            const int32_t document = documents.find(list.ids[row + i], is_new);
            scratch.document[used++] = document;
            int32_t& held = scratch.held[size_t(document)];
            held = is_new ? 1 : held + 1;
        }
    }
    make_list_values(args, scratch);
    int32_t begin = 0;
    for (int32_t document = 0; document < documents.count(); ++document) {
        const int32_t held = scratch.held[size_t(document)];
        scratch.held[size_t(document)] = begin;
        begin += held;
    }
    size_t at = 0;
    for (int32_t l = 0; l < args.num_lists; ++l) {
        const FuseList& list = args.lists[l];
        const int64_t row = b * list.width, n = scratch.counts[size_t(l)];
        for (int64_t i = 0; i < n; ++i, ++at) {
            int32_t& place = scratch.held[size_t(scratch.document[at])];
            scratch.entries[size_t(place++)] = {list.ids[row + i], l, scratch.value[at]};
        }
    }
}

// How far the lists agree on the documents that two of them hold.
Concordance concordance(const FuseArgs& args, Scratch& scratch) {
    Concordance total{0, 0};
    size_t begin = 0;  // of list a's entries
    for (int32_t a = 0; a < args.num_lists; ++a) {
        const size_t end = begin + size_t(scratch.counts[size_t(a)]);
        for (int32_t b = a + 1; b < args.num_lists; ++b) {
            scratch.kendall.clear();
            for (size_t at = begin; at < end; ++at) {
                const size_t document = size_t(scratch.document[at]);
                const int32_t last = scratch.held[document];
                int32_t other = document == 0 ? 0 : scratch.held[document - 1];
                while (other < last && scratch.entries[size_t(other)].list < b) ++other;
                if (other < last && scratch.entries[size_t(other)].list == b)
                    scratch.kendall.push(scratch.value[at], scratch.entries[size_t(other)].value);
            }
            const Concordance pair = scratch.kendall.count();
            total.balance += pair.balance;
            total.pairs += pair.pairs;
        }
        begin = end;
    }
    return total;
}

// What condorcet.h asks for, in place of each document's first position.
void count_majorities(const FuseArgs& args, const float* weights, Scratch& scratch) {
    const int32_t found = scratch.documents.count();
    scratch.majorities.start(found, args.num_lists, weights);
    for (int32_t document = 0, at = 0; document < found; ++document)
        for (; at < scratch.held[size_t(document)]; ++at) {
            const Entry& entry = scratch.entries[size_t(at)];
            scratch.majorities.rank(document, entry.list, entry.value);
        }
    for (int32_t document = 0, begin = 0; document < found; ++document) {
        scratch.entries[size_t(begin)].value = scratch.majorities.score(document);
        begin = scratch.held[size_t(document)];
    }
}

// Every document of query b, scored.
template <class Method>
void score_documents(const FuseArgs& args, int64_t b, Scratch& scratch) {
    const int32_t found = scratch.documents.count();
    const float* const weights = args.weights_shared ? args.weights : args.weights + b * args.num_lists;
    if (args.method == FusionMethod::condorcet) count_majorities(args, weights, scratch);
    const bool asks = asks_concordance(args.method, args.option);
    const Concordance total = asks ? concordance(args, scratch) : Concordance{0, 0};
    const float theta = copula_theta(args.method, total, args.option);
    const Union of{args.num_lists, found, scratch.counts.data(), 1, args.pools, weights, args.option, theta};
    int32_t begin = 0;
    for (int32_t document = 0; document < found; ++document) {
        const int32_t end = scratch.held[size_t(document)];
        const float score = fused_score<Method>(scratch.entries.data() + begin, end - begin, of, args.finish);
        scratch.ranked[size_t(document)] = {score, scratch.documents.id(document)};
        begin = end;
    }
}

using ScoreDocuments = void (*)(const FuseArgs&, int64_t, Scratch&);

ScoreDocuments scorer(FusionMethod method) {
    switch (method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: return score_documents<type>;
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
    return nullptr;
}

void fuse_query(const FuseArgs& args, int64_t b, ScoreDocuments score, Scratch& scratch) {
    gather_entries(args, b, scratch);
    score(args, b, scratch);
    const Ranked* const ranked = scratch.ranked.data();
    const int64_t count = rank_best(scratch.ranked.data(), scratch.documents.count(), args.k);
    for (int64_t i = 0; i < args.k; ++i) {
        args.ids[b * args.k + i] = i < count ? ranked[i].id : -1;
        args.scores[b * args.k + i] = i < count ? ranked[i].score : -std::numeric_limits<float>::infinity();
    }
    args.counts[b] = count;
}

Status fuse(const FuseArgs& args) {
    const ScoreDocuments score = scorer(args.method);
    if (score == nullptr) return Status::bad_argument;
    constexpr int64_t grain = 1 << 10;  // entries of lists
    const int64_t entries = args.batch * int64_t(most_entries(args));
    const int threads = threads_worth(entries, grain, args.threads);
    Vec<Scratch> scratch;  // each made in place: a copy would lose its reserved room
    scratch.reserve(size_t(threads));
    while (scratch.size() < size_t(threads)) scratch.emplace_back(args, most_entries(args));
    parallel_for(args.batch, 16, threads,
                 [&](int64_t b, int thread) { fuse_query(args, b, score, scratch[size_t(thread)]); });
    return Status::ok;
}

}  // namespace

Status calibrate_f32(const CalibrateArgs& args) {
    parallel_for(args.batch, 16, args.threads, [&](int64_t b, int) {
        const int64_t row = b * args.width;
        calibrate_row(Alone{}, args.scores + row, args.counts[b], args.width, args.rule, args.out + row);
    });
    return Status::ok;
}

Status fuse_f32(const FuseArgs& args) {
    if (args.num_lists < 1 || args.threads < 1) return Status::bad_argument;
    if (most_entries(args) > size_t{0x7fffffff})
        return Status::bad_argument;  // of one query: they are counted in int32
    try {
        return fuse(args);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
