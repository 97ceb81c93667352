// calibrate_f32 and fuse_f32 for one instruction set: threads over queries. Contracts: hopfuse/calibrate.h,
// hopfuse/fuse.h.
#include "hopfuse/fuse.h"

#include <limits>
#include <new>
#include <vector>

#include "kernels.h"
#include "threads.h"
#include "topk.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

struct EntryBefore {
    bool operator()(const Entry& a, const Entry& b) const { return entry_before(a, b); }
};

struct Number {
    float value;
};

// A thread's own room for one query, made before the loop so that nothing allocates inside it.
struct Scratch {
    std::vector<Entry> entries;
    std::vector<Ranked> documents;
    std::vector<Number> value;

    explicit Scratch(const FuseArgs& args) {
        int64_t total = 0, widest = 1;
        for (int32_t l = 0; l < args.num_lists; ++l) {
            total += args.lists[l].width;
            widest = args.lists[l].width > widest ? args.lists[l].width : widest;
        }
        entries.resize(size_t(total)), documents.reserve(size_t(total)), value.resize(size_t(widest));
    }
};

// The entries of all lists of query b, by document; returns how many there are.
template <class Method>
int64_t gather_entries(const FuseArgs& args, int64_t b, Scratch& scratch) {
    Entry* const entries = scratch.entries.data();
    float* const value = &scratch.value[0].value;
    int64_t used = 0;
    for (int32_t l = 0; l < args.num_lists; ++l) {
        const FuseList& list = args.lists[l];
        const int64_t row = b * list.width, n = list.counts[b];
        list_values<Method>(Alone{}, list.scores + row, n, args.calibration, args.ties, args.option, value);
        for (int64_t i = 0; i < n; ++i) entries[used++] = {list.ids[row + i], l, value[i]};
    }
    std::sort(entries, entries + used, EntryBefore{});
    return used;
}

template <class Method>
void fuse_query(const FuseArgs& args, int64_t b, Scratch& scratch) {
    const int64_t used = gather_entries<Method>(args, b, scratch);
    const Entry* const entries = scratch.entries.data();
    const float* const weights = args.weights_shared ? args.weights : args.weights + b * args.num_lists;
    std::vector<Ranked>& documents = scratch.documents;
    documents.clear();
    for (int64_t i = 0; i < used;) {
        int held = 1;
        while (i + held < used && entries[i + held].id == entries[i].id) ++held;
        const float score = fused_score<Method>(entries + i, held, weights, args.option, args.consensus);
        documents.push_back({score, entries[i].id});
        i += held;
    }
    const int64_t count = rank_best(documents.data(), int64_t(documents.size()), args.k);
    args.counts[b] = count;
    for (int64_t i = 0; i < args.k; ++i) {
        args.ids[b * args.k + i] = i < count ? documents[size_t(i)].id : -1;
        args.scores[b * args.k + i] = i < count ? documents[size_t(i)].score : -std::numeric_limits<float>::infinity();
    }
}

template <class Method>
Status fuse_with(const FuseArgs& args) {
    std::vector<Scratch> scratch;  // each made in place: a copy would lose its reserved room
    scratch.reserve(size_t(args.threads));
    while (scratch.size() < size_t(args.threads)) scratch.emplace_back(args);
#pragma omp parallel num_threads(args.threads)
    {
        Scratch& mine = scratch[size_t(thread_index())];
#pragma omp for schedule(dynamic, 16)
        for (int64_t b = 0; b < args.batch; ++b) fuse_query<Method>(args, b, mine);
    }
    return Status::ok;
}

Status fuse(const FuseArgs& args) {
    switch (args.method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: return fuse_with<type>(args);
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
    return Status::bad_argument;
}

}  // namespace

Status calibrate_f32(const CalibrateArgs& args) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(args.threads)
    for (int64_t b = 0; b < args.batch; ++b) {
        const int64_t row = b * args.width;
        calibrate_row(Alone{}, args.scores + row, args.counts[b], args.width, args.method, args.ties, args.out + row);
    }
    return Status::ok;
}

Status fuse_f32(const FuseArgs& args) {
    if (args.num_lists < 1 || args.threads < 1) return Status::bad_argument;
    try {
        return fuse(args);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
