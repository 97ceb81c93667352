// calibrate_f32 and fuse_f32 on a device. Contracts: hopfuse/calibrate.h, hopfuse/fuse.h, whose functions they use.
//
// fuse_f32 uses a block per query. Each of its warps computes the values of a list. Then the entries are ordered by document and
// list, the thread at a document's first entry scores it, and the documents are ordered by rank. Few entries are put in order by
// counting those before each, in shared memory; n^2 comparisons, which do not wait for each other. More of them are sorted, by
// bitonic networks over `size` entries of 16 bytes, a power of two and at least the sum of the widths of all lists: log2(size)
// (log2(size) + 1) / 2 steps, each of which waits for the one before it. Either way, in shared or in global memory, gives the same
// bits.
#include "arguments/fuse_f32.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/fuse.h"
#include "warp.h"

namespace hopfuse {

HOPFUSE_DEVICE int64_t width_of(const FlatLists& in, int32_t l) { return in.starts[l + 1] - in.starts[l]; }
// The place of a query's row of list l.
HOPFUSE_DEVICE int64_t row_of(const FlatLists& in, int32_t l, int64_t b) {
    return in.batch * in.starts[l] + b * width_of(in, l);
}
HOPFUSE_DEVICE int64_t count_of(const FlatLists& in, int32_t l, int64_t b) {
    const int64_t held = in.counts[l * in.batch + b];
    return held < in.pools[l] ? held : in.pools[l];
}

// Where the list values of a query are: in shared memory, which has those of one query alone, or in the arrays of all queries.
struct QueryValues {
    const FlatLists& in;
    int64_t batch, query;
    float* all;

    __device__ float* of(int32_t l) const { return all + batch * in.starts[l] + query * width_of(in, l); }

    // The place of a value of the query's i-th entry in the order of lists, or of padding.
    __device__ float& room(int64_t i) const {
        int32_t l = 0;
        while (i >= in.starts[l + 1]) ++l;
        return of(l)[i - in.starts[l]];
    }
};

// What a document's score and rank depend on besides its entries, and where hits are written.
struct Ranking {
    FusionMethod method;
    const FusionOptions& option;
    const float* weights;  // of this query
    const Finish& finish;
    int64_t k;
    int64_t* ids;
    float* scores;
    int64_t* count;
};

HOPFUSE_DEVICE Ranking ranking_of(const FuseArguments& a, int64_t b) {
    return {a.method,
            a.option,
            a.weights + b * a.weight_step,
            a.finish,
            a.k,
            a.out_ids + b * a.k,
            a.out_scores + b * a.k,
            a.out_counts + b};
}

// Entry::list of a document's first entry after it is scored (further entries are from later lists, above 0), and of padding,
// which sorts after all others.
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

// A query's lists in the form that mean_wasserstein reads.
struct Calibrated {
    const FlatLists& in;
    int64_t query;
    const QueryValues& all;

    __device__ int64_t count(int32_t l) const { return count_of(in, l, query); }
    __device__ const float* values(int32_t l) const { return all.of(l); }
};

// Computes query b's list values, one warp per list, and the distance of all lists, if needed, by every warp.
HOPFUSE_DEVICE void make_values(const FlatLists& in, int64_t b, const ListValues& of, const Ranking& by,
                                const QueryValues& values) {
    const Warp team{static_cast<int>(threadIdx.x % 32)};
    const int32_t first = static_cast<int32_t>(threadIdx.x / 32), step = static_cast<int32_t>(blockDim.x / 32);
    HOPFUSE_ROLLED
    for (int32_t l = first; l < in.lists; l += step) {
        const int64_t row = row_of(in, l, b), n = count_of(in, l, b);
        if (n > 0) calibrate_list(team, of.scores + row, n, l, of.calibration, values.of(l));
    }
    float distance = 0.0f;
    if (asks_distance(by.method, by.option)) {
        __syncthreads();
        distance = mean_wasserstein(team, Calibrated{in, b, values}, in.lists);
        __syncthreads();
    }
    HOPFUSE_ROLLED
    for (int32_t l = first; l < in.lists; l += step)
        list_values(team, by.method, count_of(in, l, b), l, by.option, distance, values.of(l));
    __syncthreads();
}

// Writes all entries of query b, those of each list at the offset given by the widths, with padding elsewhere. Returns the
// number of entries.
HOPFUSE_DEVICE int64_t fill_entries(const FlatLists& in, int64_t b, const int64_t* ids, const float* values,
                                    int64_t size, Entry* entries) {
    int64_t used = 0;
    HOPFUSE_ROLLED
    for (int32_t l = 0; l < in.lists; ++l) {
        const int64_t start = in.starts[l], width = width_of(in, l);
        const int64_t count = count_of(in, l, b);
        const int64_t row = row_of(in, l, b);
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
            entries[start + i] = i < count ? Entry{ids[row + i], l, values[row + i]} : padding();
        used += count;
    }
    for (int64_t i = in.starts[in.lists] + threadIdx.x; i < size; i += blockDim.x) entries[i] = padding();
    return used;
}

template <class Before>
HOPFUSE_DEVICE void put_in_order(Entry& a, Entry& b, bool ascending, Before before) {
    const Entry first = a, second = b;
    if (ascending ? !before(second, first) : !before(first, second)) return;
    a = second;
    b = first;
}

// A bitonic network, by the whole block. Each warp has the same pairs' positions in every step, and up to distance 32 its
// pairs are in a range of 64 entries that no other warp accesses, so those steps need only synchronise the warp.
template <class Before>
HOPFUSE_DEVICE void sort(Entry* entries, int64_t size, Before before) {
    bool crossed = true;  // entries may come from another warp
    for (int64_t run = 2; run <= size; run *= 2) {
        for (int64_t distance = run / 2; distance > 0; distance /= 2) {
            if (crossed || distance > 32) __syncthreads();
            else __syncwarp();
            crossed = distance > 32;
            HOPFUSE_ROLLED
            for (int64_t pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
                const int64_t low = 2 * pair - (pair & (distance - 1));
                put_in_order(entries[low], entries[low + distance], (low & run) == 0, before);
            }
        }
    }
    __syncthreads();
}

HOPFUSE_DEVICE int entries_of(const Entry* entry, int64_t left) {
    int held = 1;
    while (held < left && entry[held].id == entry->id) ++held;
    return held;
}

// Scores the document whose first entry this is. Only one thread accesses the entries of a document, except their ids, which
// others read and no thread changes.
HOPFUSE_DEVICE void score_document(const Ranking& by, const Union& of, int64_t left, Entry* entry) {
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

HOPFUSE_DEVICE bool begins_document(const Entry* entries, int64_t used, int64_t i) {
    return i < used && (i == 0 || entries[i - 1].id != entries[i].id);
}

HOPFUSE_DEVICE void add(int64_t* total, int64_t mine) {
    atomicAdd(reinterpret_cast<unsigned long long*>(total), static_cast<unsigned long long>(mine));
}

// The concordance for gumbel.h over all documents. These are integers, so the order of addition does not matter. They are
// accumulated where the query's hits will be written.
HOPFUSE_DEVICE Concordance concordance(const Entry* entries, int64_t used, const Ranking& by) {
    if (threadIdx.x == 0) *by.ids = *by.count = 0;
    __syncthreads();
    Concordance mine{0, 0};
    for (int64_t i = threadIdx.x; i < used; i += blockDim.x) {
        if (!begins_document(entries, used, i)) continue;
        const int held = entries_of(entries + i, used - i);
        for (int64_t j = i + held; held >= 2 && j < used;) {
            const int other = entries_of(entries + j, used - j);
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

// The value for condorcet.h of the document at entry i.
HOPFUSE_DEVICE float majorities(const Entry* entries, int64_t used, int64_t i, const float* weights) {
    const int held = entries_of(entries + i, used - i);
    int halves = 0;
    for (int64_t j = 0; j < used;) {
        const int other = entries_of(entries + j, used - j);
        if (j != i) halves += 1 + majority(entries + i, held, entries + j, other, weights);
        j += other;
    }
    return 0.5f * static_cast<float>(halves);
}

// Writes all documents' majorities to their first entries. They are stored in place of the list values meanwhile, because all
// entries are read until the last majority is known.
HOPFUSE_DEVICE void count_majorities(const float* weights, int64_t used, const QueryValues& values, Entry* entries) {
    for (int64_t i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document(entries, used, i)) values.room(i) = majorities(entries, used, i, weights);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document(entries, used, i)) entries[i].value = values.room(i);
}

// Scores every document among `used` entries, in the order of documents; returns the number of documents. Overwrites
// `values`.
HOPFUSE_DEVICE int64_t score_documents(const FlatLists& in, int64_t b, const Ranking& by, int64_t used,
                                       const QueryValues& values, Entry* entries) {
    int64_t documents = 0;
    for (int64_t base = 0; base < used; base += blockDim.x)
        documents += __syncthreads_count(begins_document(entries, used, base + threadIdx.x));
    Concordance total{0, 0};
    if (asks_concordance(by.method, by.option)) total = concordance(entries, used, by);
    if (by.method == FusionMethod::condorcet) count_majorities(by.weights, used, values, entries);
    const float theta = copula_theta(by.method, total, by.option);
    const Union of{in.lists, documents, in.counts + b, in.batch, in.pools, by.weights, by.option, theta};
    HOPFUSE_ROLLED
    for (int64_t i = threadIdx.x; i < used; i += blockDim.x)
        if (begins_document(entries, used, i)) score_document(by, of, used - i, entries + i);
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

// Fuses one query by sorting, in a buffer of `a.size` entries.
HOPFUSE_DEVICE void fuse_by_sorting(const FuseArguments& a, int64_t b, Entry* entries) {
    const Ranking by = ranking_of(a, b);
    const QueryValues values{a.lists, a.lists.batch, b, a.values.values};
    make_values(a.lists, b, a.values, by, values);
    const int64_t used = fill_entries(a.lists, b, a.ids, a.values.values, a.size, entries);
    sort(entries, a.size, ByDocument{});
    const int64_t documents = score_documents(a.lists, b, by, used, values, entries);
    sort(entries, a.size, ByRank{});
    write_hits(by, entries, documents < by.k ? documents : by.k);
}

// ---- By counting

// The shared memory of a query whose entries are put in order by counting.
struct Counted {
    Entry *before, *entries;  // (size,) in the order of lists, and of documents
    float*
        values;  // (size,) list values by the widths of lists, and then rank keys of entries, 0 of those that have none

    __device__ static Counted of(Entry* shared, int64_t size) {
        return {shared, shared + size, reinterpret_cast<float*>(shared + 2 * size)};
    }
};

// Reads the ids of query b's entries, list after list, each with the place of its value. Returns their number.
HOPFUSE_DEVICE int read_entries(const FlatLists& in, int64_t b, const int64_t* ids, Entry* entries) {
    int used = 0;
    HOPFUSE_ROLLED
    for (int32_t l = 0; l < in.lists; ++l) {
        const int count = static_cast<int>(count_of(in, l, b));
        const int64_t row = row_of(in, l, b), start = in.starts[l];
        for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
            entries[used + i] = Entry{ids[row + i], l, bits_to_float(static_cast<uint32_t>(start + i))};
        used += count;
    }
    return used;
}

// Puts entries in the order of documents. Those of a document are in the order of their lists before, too.
HOPFUSE_DEVICE void order_by_document(const Counted& all, int used) {
    for (int i = static_cast<int>(threadIdx.x); i < used; i += static_cast<int>(blockDim.x)) {
        Entry mine = all.before[i];
        int place = 0;
#pragma unroll 4
        for (int j = 0; j < used; ++j) {
            const int64_t id = all.before[j].id;
            place += id < mine.id || (id == mine.id && j < i) ? 1 : 0;
        }
        mine.value = all.values[float_to_bits(mine.value)];
        all.entries[place] = mine;
    }
    __syncthreads();
}

// A score as a number above 0 in the same order; -0 is 0.
HOPFUSE_DEVICE uint32_t rank_key(float score) {
    const uint32_t bits = float_to_bits(score + 0.0f), sign = 0x80000000u;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

// Writes the hits of scored documents, which are in the order of ids: that of equal scores.
HOPFUSE_DEVICE void write_ranked(const Ranking& by, const Counted& all, int used, int64_t documents) {
    uint32_t* const keys = reinterpret_cast<uint32_t*>(all.values);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    for (int i = thread; i < used; i += threads)  // those that the thread itself has scored
        keys[i] = all.entries[i].list == DOCUMENT ? rank_key(all.entries[i].value) : 0;
    __syncthreads();
    HOPFUSE_ROLLED
    for (int i = thread; i < used; i += threads) {
        const uint32_t mine = keys[i];
        if (mine == 0) continue;
        int place = 0;
#pragma unroll 4
        for (int j = 0; j < used; ++j) place += keys[j] > mine || (keys[j] == mine && j < i) ? 1 : 0;
        if (place >= by.k) continue;
        by.ids[place] = all.entries[i].id;
        by.scores[place] = all.entries[i].value;
    }
    const int64_t count = documents < by.k ? documents : by.k;
    for (int64_t i = count + thread; i < by.k; i += threads) {
        by.ids[i] = -1;
        by.scores[i] = bits_to_float(0xff800000u);
    }
    if (thread == 0) *by.count = count;
}

// Fuses one query in shared memory, of which an entry has FUSE_COUNTED_BYTES.
HOPFUSE_DEVICE void fuse_by_counting(const FuseArguments& a, int64_t b, Entry* shared) {
    const Ranking by = ranking_of(a, b);
    const Counted all = Counted::of(shared, a.size);
    const QueryValues values{a.lists, 1, 0, all.values};
    const int used = read_entries(a.lists, b, a.ids, all.before);
    make_values(a.lists, b, a.values, by, values);
    order_by_document(all, used);
    const int64_t documents = score_documents(a.lists, b, by, used, values, all.entries);
    write_ranked(by, all, used, documents);
}

}  // namespace hopfuse

// calibrate_f32: the calibrated scores of a row, with -inf after its count.
// Unit: a row; a warp, 4 to a block. Block: 128. Registers: <= 56 (occupancy 50 %). Bytes: 4 n read and 4 width written;
// z_score and three_sigma read the scores twice and their own results twice, l2 the scores twice, sum and softmax their own
// results twice; pit and gaussian read from a score up to the first that differs.
extern "C" __global__ void __launch_bounds__(128, 8)
    calibrate_f32(int64_t batch, int64_t width, const float* scores, const int64_t* counts,
                  const hopfuse::CalibrationRule rule, float* out) {
    const int64_t b = static_cast<int64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
    if (b >= batch) return;
    const hopfuse::Warp team{static_cast<int>(threadIdx.x % 32)};
    hopfuse::calibrate_row(team, scores + b * width, counts[b], width, rule, out + b * width);
}

// fuse_lists: copies the rows (batch, width) of some lists to their places in FlatLists.
// Unit: an entry of any list; `batch` entries at least of each. Block: 256. Registers: <= 40. Bytes: 24 an entry, 16 a row.
extern "C" __global__ void __launch_bounds__(256) fuse_lists(int64_t batch, const hopfuse::GivenLists given,
                                                             int64_t* all_ids, float* all_scores, int64_t* all_counts) {
    const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    HOPFUSE_ROLLED
    for (int l = 0; l < given.lists; ++l) {
        const hopfuse::GivenList& list = given.list[l];
        if (at < batch) all_counts[(given.first + l) * batch + at] = list.counts[at];
        if (at >= batch * list.width) continue;
        all_ids[batch * list.start + at] = list.ids[at];
        all_scores[batch * list.start + at] = list.scores[at];
    }
}

// fuse_f32: the best k documents of each query. Up to 512 entries of `size`, with no `room`, are put in order by counting in shared
// memory, 36 bytes each; up to 2048 are sorted there, 16 bytes each; and if `room` is given, in global memory, `size` entries per
// block, for lists of any size.
// Unit: a query; a block, which then takes another. Block: 256. Shared memory: <= 32 KiB. Registers: <= 64 (occupancy
// 50 %). At size 256 (lists of 100 and 30) 9 KiB. Bytes: 12 of every entry and 8 of every list read, 12 k written; list values as
// calibrate_f32, of counted entries in shared memory, and boltzmann goes over them three times more; in global memory each of the
// log2(size) (log2(size) + 1) / 2 steps of the two sorts reads 16 size and writes as much of it as it changes. gumbel, for
// its theta, and condorcet compare every two documents.
extern "C" __global__ void __launch_bounds__(256, 4) fuse_f32(const hopfuse::FuseArguments a) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(Entry, shared);
    Entry* const entries = a.room == nullptr ? shared : reinterpret_cast<Entry*>(a.room) + blockIdx.x * a.size;
    for (int64_t b = blockIdx.x; b < a.lists.batch; b += gridDim.x) {
        if (a.is_counted != 0) fuse_by_counting(a, b, shared);
        else fuse_by_sorting(a, b, entries);
        __syncthreads();
    }
}

HOPFUSE_KERNEL_TYPE(calibrate_f32, hopfuse::CalibrateKernel);
HOPFUSE_KERNEL_TYPE(fuse_lists, hopfuse::FuseListsKernel);
HOPFUSE_KERNEL_TYPE(fuse_f32, hopfuse::FuseKernel);
