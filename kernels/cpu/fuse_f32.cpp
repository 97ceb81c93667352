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

struct Entry {  // a document's place in one list
    int64_t id;
    int32_t list;
    float value;
};

struct EntryBefore {
    bool operator()(const Entry& a, const Entry& b) const { return a.id < b.id || (a.id == b.id && a.list < b.list); }
};

struct Number {
    float value;
};

struct Flag {
    bool value;
};

// A thread's own room for one query, made before the loop so that nothing allocates inside it.
struct Scratch {
    std::vector<Entry> entries;
    std::vector<Ranked> documents;
    std::vector<Number> calibrated, in_list, value;
    std::vector<Flag> present;

    explicit Scratch(const FuseArgs& args) : value(size_t(args.num_lists)), present(size_t(args.num_lists)) {
        int64_t total = 0, widest = 1;
        for (int32_t l = 0; l < args.num_lists; ++l) {
            total += args.lists[l].width;
            widest = args.lists[l].width > widest ? args.lists[l].width : widest;
        }
        entries.reserve(size_t(total)), documents.reserve(size_t(total));
        calibrated.resize(size_t(widest)), in_list.resize(size_t(widest));
    }
};

template <class Method>
void fuse_query(const FuseArgs& args, int64_t b, Scratch& scratch) {
    float* calibrated = &scratch.calibrated[0].value;
    float* in_list = &scratch.in_list[0].value;
    float* value = &scratch.value[0].value;
    bool* present = &scratch.present[0].value;
    std::vector<Ranked>& documents = scratch.documents;
    scratch.entries.clear(), documents.clear();
    for (int32_t l = 0; l < args.num_lists; ++l) {
        const FuseList& list = args.lists[l];
        const int64_t n = list.counts[b];
        if (n == 0) continue;
        calibrate_list(list.scores + b * list.width, n, args.calibration, args.ties, calibrated);
        Method::list_values(calibrated, n, args.option, in_list);
        for (int64_t i = 0; i < n; ++i) scratch.entries.push_back({list.ids[b * list.width + i], l, in_list[i]});
    }
    std::sort(scratch.entries.begin(), scratch.entries.end(), EntryBefore{});
    const float* weights = args.weights_shared ? args.weights : args.weights + b * args.num_lists;
    for (size_t i = 0; i < scratch.entries.size();) {
        const int64_t id = scratch.entries[i].id;
        for (int32_t l = 0; l < args.num_lists; ++l) value[l] = 0.0f, present[l] = false;
        int held = 0;
        for (; i < scratch.entries.size() && scratch.entries[i].id == id; ++i, ++held) {
            value[scratch.entries[i].list] = scratch.entries[i].value;
            present[scratch.entries[i].list] = true;
        }
        float score = Method::document_score(value, present, args.num_lists, weights, args.option);
        if (held >= 2) score = score + args.consensus;
        documents.push_back({score, id});
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
        const int64_t n = args.counts[b];
        float* out = args.out + b * args.width;
        if (n > 0) calibrate_list(args.scores + b * args.width, n, args.method, args.ties, out);
        for (int64_t i = n; i < args.width; ++i) out[i] = -std::numeric_limits<float>::infinity();
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
