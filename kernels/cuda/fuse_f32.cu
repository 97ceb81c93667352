// calibrate_f32 and fuse_f32 on a device. Contracts: hopfuse/calibrate.h, hopfuse/fuse.h, whose arithmetic this is.
//
// fuse_shared and fuse_global take a block to a query. Its warps make the list values, a list each; then it sorts the
// entries by document and list, the thread at a document's first entry scores it, and the documents are sorted by rank.
// Both sorts are bitonic networks over `size` entries of 16 bytes, a power of two that holds the widths of all lists.
// Which of the two kernels runs changes no bit.
#include "hopfuse/device.h"
#include "hopfuse/fuse.h"
#include "warp.h"

namespace hopfuse {

// The lists of a launch of fuse: list l's rows are (B, width), after those of the lists before it.
struct FlatLists {
    int64_t batch;
    int32_t lists;
    const int64_t* starts;  // (L + 1,) sums of widths
    const int64_t* counts;  // (L, B)
    const int64_t* pools;   // (L,) the most that is taken of a list

    __device__ int64_t width(int32_t l) const { return starts[l + 1] - starts[l]; }
    __device__ int64_t row(int32_t l, int64_t b) const { return batch * starts[l] + b * width(l); }
    __device__ int64_t count(int32_t l, int64_t b) const {
        const int64_t held = counts[l * batch + b];
        return held < pools[l] ? held : pools[l];
    }
};

// What list values are made of, and where they go: laid out as the scores are.
struct ListValues {
    const float* scores;
    CalibrationRule calibration;
    float* values;
};

// What a document's score and rank depend on beside its entries, and where the hits go.
struct Ranking {
    FusionMethod method;
    const float* option;
    const float* weights;  // of this query
    Finish finish;
    int64_t k;
    int64_t* ids;
    float* scores;
    int64_t* count;
};

// Entry::list of a document's first entry once it is scored; further ones are of later lists, above 0. And of padding,
// which sorts behind all others.
constexpr int32_t DOCUMENT = 0, NO_ENTRY = 0x7fffffff;

struct ByDocument {
    __device__ bool operator()(const Entry& a, const Entry& b) const { return entry_before(a, b); }
};

struct ByRank {
    __device__ bool operator()(const Entry& a, const Entry& b) const {
        return a.list < b.list || (a.list == b.list && ranks_before(a.value, a.id, b.value, b.id));
    }
};

HOPFUSE_DEVICE Entry padding() { return Entry{0x7fffffffffffffff, NO_ENTRY, 0.0f}; }

// A query's lists as mean_wasserstein reads them.
struct Calibrated {
    const FlatLists& in;
    int64_t query;
    const float* all;

    __device__ int64_t count(int32_t l) const { return in.count(l, query); }
    __device__ const float* values(int32_t l) const { return all + in.row(l, query); }
};

// Query b's list values, a warp to a list; the distance of all, where it is asked for, by every warp.
HOPFUSE_DEVICE void make_values(const FlatLists& in, int64_t b, const ListValues& of, const Ranking& by) {
    const Warp team{static_cast<int>(threadIdx.x % 32)};
    const int32_t first = static_cast<int32_t>(threadIdx.x / 32), step = static_cast<int32_t>(blockDim.x / 32);
    HOPFUSE_ROLLED
    for (int32_t l = first; l < in.lists; l += step) {
        const int64_t row = in.row(l, b), n = in.count(l, b);
        if (n > 0) calibrate_list(team, of.scores + row, n, l, of.calibration, of.values + row);
    }
    float distance = 0.0f;
    if (asks_distance(by.method, by.option)) {
        __syncthreads();
        distance = mean_wasserstein(team, Calibrated{in, b, of.values}, in.lists);
        __syncthreads();
    }
    HOPFUSE_ROLLED
    for (int32_t l = first; l < in.lists; l += step)
        list_values(team, by.method, in.count(l, b), l, by.option, distance, of.values + in.row(l, b));
    __syncthreads();
}

// All entries of query b, each list's at the place that the widths give it, and padding elsewhere. Returns how many
// entries there are.
template <class Index>
HOPFUSE_DEVICE Index fill_entries(const FlatLists& in, int64_t b, const int64_t* ids, const float* values, Index size,
                                  Entry* entries) {
    Index used = 0;
    HOPFUSE_ROLLED
    for (int32_t l = 0; l < in.lists; ++l) {
        const Index start = static_cast<Index>(in.starts[l]), width = static_cast<Index>(in.width(l));
        const Index count = static_cast<Index>(in.count(l, b));
        const int64_t row = in.row(l, b);
        for (Index i = threadIdx.x; i < width; i += blockDim.x)
            entries[start + i] = i < count ? Entry{ids[row + i], l, values[row + i]} : padding();
        used += count;
    }
    for (Index i = static_cast<Index>(in.starts[in.lists]) + threadIdx.x; i < size; i += blockDim.x)
        entries[i] = padding();
    return used;
}

template <class Before>
HOPFUSE_DEVICE void put_in_order(Entry& a, Entry& b, bool ascending, Before before) {
    const Entry first = a, second = b;
    if (ascending ? !before(second, first) : !before(first, second)) return;
    a = second;
    b = first;
}

// A bitonic network, by the whole block. A pair's warp is the same in every step, and up to distance 32 its pairs lie
// in a range of 64 entries that no other warp touches, so that those steps wait for the warp alone.
template <class Index, class Before>
HOPFUSE_DEVICE void sort(Entry* entries, Index size, Before before) {
    bool crossed = true;  // entries may come from another warp
    for (Index run = 2; run <= size; run *= 2) {
        for (Index distance = run / 2; distance > 0; distance /= 2) {
            if (crossed || distance > 32) __syncthreads();
            else __syncwarp();
            crossed = distance > 32;
            HOPFUSE_ROLLED
            for (Index pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
                const Index low = 2 * pair - (pair & (distance - 1));
                put_in_order(entries[low], entries[low + distance], (low & run) == 0, before);
            }
        }
    }
    __syncthreads();
}

template <class Index>
HOPFUSE_DEVICE int entries_of(const Entry* entry, Index left) {
    int held = 1;
    while (held < left && entry[held].id == entry->id) ++held;
    return held;
}

// Scores the document whose first entry this is. One thread has all entries of a document, but for their ids, which
// others read and nobody changes.
template <class Index>
HOPFUSE_DEVICE void score_document(const Ranking& by, const Union& of, Index left, Entry* entry) {
    const int held = entries_of(entry, left);
    float score = 0.0f;
    switch (by.method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: score = fused_score<type>(entry, held, of, by.finish); break;
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
    entry->value = score;
    entry->list = DOCUMENT;
}

template <class Index>
HOPFUSE_DEVICE bool begins_document(const Entry* entries, Index used, Index i) {
    return i < used && (i == 0 || entries[i - 1].id != entries[i].id);
}

HOPFUSE_DEVICE void add(int64_t* total, int64_t mine) {
    atomicAdd(reinterpret_cast<unsigned long long*>(total), static_cast<unsigned long long>(mine));
}

// What gumbel.h asks of all documents: whole numbers, whose order of adding changes nothing. They are added up where
// the query's hits will stand.
template <class Index>
HOPFUSE_DEVICE Concordance concordance(const Entry* entries, Index used, const Ranking& by) {
    if (threadIdx.x == 0) *by.ids = *by.count = 0;
    __syncthreads();
    Concordance mine{0, 0};
    for (Index i = threadIdx.x; i < used; i += blockDim.x) {
        if (!begins_document<Index>(entries, used, i)) continue;
        const int held = entries_of<Index>(entries + i, used - i);
        for (Index j = i + held; held >= 2 && j < used;) {
            const int other = entries_of<Index>(entries + j, used - j);
            if (other >= 2) add_concordance(entries + i, held, entries + j, other, mine);
            j += other;
        }
    }
    if (mine.pairs > 0) {
        add(by.ids, mine.balance);
        add(by.count, mine.pairs);
    }
    __syncthreads();
    return Concordance{*by.ids, *by.count};
}

// Where the list value stood that made a query's i-th entry, before entries were sorted.
HOPFUSE_DEVICE float& room(const FlatLists& in, int64_t b, float* values, int64_t i) {
    int32_t l = 0;
    while (i >= in.starts[l + 1]) ++l;
    return values[in.row(l, b) + (i - in.starts[l])];
}

// What condorcet.h asks for, of the document at entry i.
template <class Index>
HOPFUSE_DEVICE float majorities(const Entry* entries, Index used, Index i, const float* weights) {
    const int held = entries_of<Index>(entries + i, used - i);
    int halves = 0;
    for (Index j = 0; j < used;) {
        const int other = entries_of<Index>(entries + j, used - j);
        if (j != i) halves += 1 + majority(entries + i, held, entries + j, other, weights);
        j += other;
    }
    return 0.5f * static_cast<float>(halves);
}

// All documents' majorities to their first entries: by way of the room of the list values, for all entries are read
// until the last is known.
template <class Index>
HOPFUSE_DEVICE void count_majorities(const FlatLists& in, int64_t b, const float* weights, Index used, float* values,
                                     Entry* entries) {
    for (Index i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document<Index>(entries, used, i))
            room(in, b, values, i) = majorities<Index>(entries, used, i, weights);
    __syncthreads();
    for (Index i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document<Index>(entries, used, i)) entries[i].value = room(in, b, values, i);
}

// Scores every document among `used` entries in the order of documents; returns how many there are. Of `values` the
// room is used.
template <class Index>
HOPFUSE_DEVICE Index score_documents(const FlatLists& in, int64_t b, const Ranking& by, Index used, float* values,
                                     Entry* entries) {
    Index documents = 0;
    for (Index base = 0; base < used; base += blockDim.x)
        documents += __syncthreads_count(begins_document<Index>(entries, used, base + threadIdx.x));
    Concordance total{0, 0};
    if (asks_concordance(by.method, by.option)) total = concordance<Index>(entries, used, by);
    if (by.method == FusionMethod::condorcet) count_majorities<Index>(in, b, by.weights, used, values, entries);
    const float theta = copula_theta(by.method, total, by.option);
    const Union of{in.lists, documents, in.counts + b, in.batch, in.pools, by.weights, by.option, theta};
    HOPFUSE_ROLLED
    for (Index i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document<Index>(entries, used, i)) score_document<Index>(by, of, used - i, entries + i);
    return documents;
}

HOPFUSE_DEVICE void write_hits(const Ranking& by, const Entry* best, int64_t count) {
    HOPFUSE_ROLLED
    for (int64_t i = threadIdx.x; i < by.k; i += blockDim.x) {
        by.ids[i] = i < count ? best[i].id : -1;
        by.scores[i] = i < count ? best[i].value : bits_to_float(0xff800000u);
    }
    if (threadIdx.x == 0) *by.count = count;
}

// One query, in room for `size` entries.
template <class Index>
HOPFUSE_DEVICE void fuse_query(const FlatLists& in, int64_t b, const int64_t* ids, const ListValues& of,
                               const Ranking& by, Index size, Entry* entries) {
    make_values(in, b, of, by);
    const Index used = fill_entries(in, b, ids, of.values, size, entries);
    sort(entries, size, ByDocument{});
    const Index documents = score_documents(in, b, by, used, of.values, entries);
    sort(entries, size, ByRank{});
    write_hits(by, entries, documents < by.k ? documents : by.k);
}

}  // namespace hopfuse

// calibrate_f32: what a row's scores become, with -inf after its count.
// Unit: a row; a warp, 4 to a block. Block: 128. Registers: <= 56 (occupancy 50 %). Bytes: 4 n read and 4 width written;
// z_score and three_sigma read scores twice and what they have written twice, l2 scores twice, sum and softmax what they
// have written twice; pit and gaussian read on from a score to the first that differs.
extern "C" __global__ void __launch_bounds__(128, 8)
    calibrate_f32(int64_t batch, int64_t width, const float* scores, const int64_t* counts, int32_t method,
                  int32_t ties, const float* option, float* out) {
    const int64_t b = static_cast<int64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
    if (b >= batch) return;
    const hopfuse::Warp team{static_cast<int>(threadIdx.x % 32)};
    const hopfuse::CalibrationRule rule{static_cast<hopfuse::Calibration>(method), static_cast<hopfuse::Ties>(ties),
                                        option};
    hopfuse::calibrate_row(team, scores + b * width, counts[b], width, rule, out + b * width);
}

#define HOPFUSE_FUSE_PARAMETERS                                                                                      \
    int64_t batch, int32_t lists, const int64_t *starts, const int64_t *counts, const int64_t *pools,                \
        const int64_t *ids, const float *scores, int32_t calibration, int32_t ties, const float *calibration_option, \
        float *values, int32_t method, const float *option, const float *weights, int64_t weight_step,               \
        float consensus, const float *prior, int64_t priors, int64_t k, int64_t *out_ids, float *out_scores,         \
        int64_t *out_counts

// weight_step: from a query's weights to the next one's; as many as there are lists, or 0 where all share them.
#define HOPFUSE_FUSE_QUERY(b, size, entries)                                                        \
    hopfuse::fuse_query(hopfuse::FlatLists{batch, lists, starts, counts, pools}, b, ids,            \
                        hopfuse::ListValues{scores,                                                 \
                                            {static_cast<hopfuse::Calibration>(calibration),        \
                                             static_cast<hopfuse::Ties>(ties), calibration_option}, \
                                            values},                                                \
                        hopfuse::Ranking{static_cast<hopfuse::FusionMethod>(method),                \
                                         option,                                                    \
                                         weights + b * weight_step,                                 \
                                         {consensus, prior, priors},                                \
                                         k,                                                         \
                                         out_ids + b * k,                                           \
                                         out_scores + b * k,                                        \
                                         out_counts + b},                                           \
                        size, entries)

// fuse_shared_f32: the best k documents of each query, in shared memory: 16 size bytes, size at most 2048.
// Unit: a query; a block. Block: 256. Shared memory: <= 32 KiB. Registers: <= 64 (occupancy 50 %). At size 256 (lists of
// 100 and 30) 4 KiB and 128 threads. Bytes: 12 of every entry and 8 of every list read, 12 k written; list values as
// calibrate_f32, and boltzmann goes over them three times more. gumbel, for its theta, and condorcet compare every two
// documents.
extern "C" __global__ void __launch_bounds__(256, 4) fuse_shared_f32(HOPFUSE_FUSE_PARAMETERS, int size) {
    HOPFUSE_DYNAMIC_SHARED(hopfuse::Entry, entries);
    const int64_t b = blockIdx.x;
    HOPFUSE_FUSE_QUERY(b, size, entries);
}

// fuse_global_f32: the same with room in global memory, `size` entries to a block, and so for any lists.
// Unit: a query; a block, which goes on with another. Block: 256. Registers: <= 64 (occupancy 50 %). Bytes: each of the
// log2(size) (log2(size) + 1) steps of the sorts reads 16 size and writes as much of it as it changes.
extern "C" __global__ void __launch_bounds__(256, 4)
    fuse_global_f32(HOPFUSE_FUSE_PARAMETERS, int64_t size, void* room) {
    hopfuse::Entry* const entries = static_cast<hopfuse::Entry*>(room) + blockIdx.x * size;
    for (int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
        HOPFUSE_FUSE_QUERY(b, size, entries);
        __syncthreads();
    }
}
