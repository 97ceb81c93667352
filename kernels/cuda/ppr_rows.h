// Sums over the entries of rows, by warps whose threads have four neighbouring lanes each: L / 4 threads have a row, and a warp
// 128 / L rows. Contract: hopfuse/ppr.h. Device code only.
#pragma once

#include "ppr_walk.h"

namespace hopfuse {

template <int L>
constexpr int row_threads = L / 4;
template <int L>
constexpr int warp_rows = 32 / row_threads<L>;

// The warp of all threads of a launch, and the number of the thread's lanes: four of them, after 4 `four`.
struct WarpPlace {
    int64_t warp, warps;
    int lane;  // of the warp

    __device__ WarpPlace()
        : warp((static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32),
          warps(static_cast<int64_t>(gridDim.x) * blockDim.x / 32), lane(static_cast<int>(threadIdx.x) % 32) {}
};

// Four lanes of a table (N, L), whose rows are aligned to 16 bytes; at = row (L / 4) + four.
HOPFUSE_DEVICE float4 read_four(const float* table, int64_t at) { return reinterpret_cast<const float4*>(table)[at]; }

HOPFUSE_DEVICE float4 four_times(float a) { return make_float4(a, a, a, a); }

HOPFUSE_DEVICE float4 multiply(const float4& a, const float4& b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

HOPFUSE_DEVICE float4 multiply_add_four(const float4& a, const float4& b, const float4& c) {
    return make_float4(fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w));
}

// An entry of a row. Without weights they are 1, which changes no product.
struct Entry {
    int32_t source;
    float weight;
    int32_t type;
};

template <int Kind>
HOPFUSE_DEVICE Entry read_entry(const DeviceRows& rows, int64_t e) {
    Entry entry = {rows.indices[e], 1.0f, 0};
    if (Kind != edges_plain && rows.weight != nullptr) entry.weight = rows.weight[e];
    if (Kind >= edges_typed && rows.edge_type != nullptr) entry.type = rows.edge_type[e];
    return entry;
}

// What is read for an entry in four lanes, and how it adds to a row's sum: with one rounding in each lane.
template <int L, int Kind>
struct FourTerms {
    // Set before an entry is read, so that no register keeps those of the last one.
    float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f), scale = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    __device__ void read(const DeviceRows& rows, const float* state, const Entry& entry, int four) {
        const int64_t u = entry.source;
        y = read_four(state, u * row_threads<L> + four);
        if (Kind != edges_per_type) return;
        const int64_t at = u * rows.num_types + entry.type;
        scale = rows.per_lane ? read_four(rows.scale, at * row_threads<L> + four) : four_times(rows.scale[at]);
    }

    __device__ float4 plus(const DeviceRows& rows, const Entry& entry, int four, const float4& acc) const {
        const float4 weight = four_times(entry.weight);
        if (Kind <= edges_untyped) return multiply_add_four(weight, y, acc);
        const bool has_eta = rows.eta != nullptr && !(Kind == edges_per_type && rows.per_lane);
        const float4 eta =
            has_eta ? read_four(rows.eta, int64_t(entry.type) * row_threads<L> + four) : four_times(1.0f);
        if (Kind == edges_typed) return multiply_add_four(multiply(weight, eta), y, acc);
        return multiply_add_four(weight, multiply(y, multiply(scale, eta)), acc);
    }
};

// The same in one lane.
template <int L, int Kind>
HOPFUSE_DEVICE float add_entry(const DeviceRows& rows, const float* state, int64_t e, int lane, float acc) {
    const Entry entry = read_entry<Kind>(rows, e);
    const int64_t u = entry.source;
    const float y = state[u * L + lane];
    if (Kind <= edges_untyped) return fmaf(entry.weight, y, acc);
    const float eta = rows.eta == nullptr ? 1.0f : rows.eta[entry.type * L + lane];
    if (Kind == edges_typed) return fmaf(entry.weight * eta, y, acc);
    const int64_t at = u * rows.num_types + entry.type;
    const float factor = rows.per_lane ? rows.scale[at * L + lane] : rows.scale[at] * eta;
    return fmaf(entry.weight, y * factor, acc);
}

template <int L>
HOPFUSE_DEVICE float add_entry(const DeviceRows& rows, int kind, const float* state, int64_t e, int lane, float acc) {
    if (kind == edges_plain) return add_entry<L, edges_plain>(rows, state, e, lane, acc);
    if (kind == edges_weighted) return add_entry<L, edges_weighted>(rows, state, e, lane, acc);
    if (kind == edges_typed) return add_entry<L, edges_typed>(rows, state, e, lane, acc);
    return add_entry<L, edges_per_type>(rows, state, e, lane, acc);
}

// Entries that count, of at most 64 from `begin` on, added in their order; `marks` has a bit for each of them.
template <int L, int Kind>
HOPFUSE_DEVICE float4 sum_marked(const DeviceRows& rows, const float* state, int64_t begin, uint64_t marks, int four) {
    constexpr int ahead = Kind == edges_per_type ? 1 : 2;  // the other rows of a warp are read meanwhile
    float4 acc = four_times(0.0f);
    HOPFUSE_ROLLED
    while (marks != 0) {
        Entry entries[ahead];
        FourTerms<L, Kind> terms[ahead];
        bool counts[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            counts[i] = marks != 0;
            entries[i] = Entry{0, 1.0f, 0};
            if (counts[i]) entries[i] = read_entry<Kind>(rows, begin + __ffsll(static_cast<long long>(marks)) - 1);
            marks = marks & (marks - 1);
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (counts[i]) terms[i].read(rows, state, entries[i], four);
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (counts[i]) acc = terms[i].plus(rows, entries[i], four, acc);
    }
    return acc;
}

template <int L>
HOPFUSE_DEVICE float4 sum_marked(const DeviceRows& rows, int kind, const float* state, int64_t begin, uint64_t marks,
                                 int four) {
    if (kind == edges_plain) return sum_marked<L, edges_plain>(rows, state, begin, marks, four);
    if (kind == edges_weighted) return sum_marked<L, edges_weighted>(rows, state, begin, marks, four);
    if (kind == edges_typed) return sum_marked<L, edges_typed>(rows, state, begin, marks, four);
    return sum_marked<L, edges_per_type>(rows, state, begin, marks, four);
}

// The entries of a row, or of a segment, of which no more than the lower half of the end's number is kept.
struct EntrySpan {
    int64_t begin;
    uint32_t end;

    __device__ EntrySpan(int64_t first, int64_t last) : begin(first), end(static_cast<uint32_t>(last)) {}
    // At most one more than a segment has.
    __device__ int length() const {
        constexpr uint32_t most = PPR_SEGMENT + 1;
        const uint32_t all = end - static_cast<uint32_t>(begin);
        return static_cast<int>(all < most ? all : most);
    }
};

// Which entries of a warp's spans have a source in `words`: 32 entries at a time. Lane i, below Spans, has span i, of at most 64
// entries, and gets its bits; spans that follow each other are read as one. Called by whole warps.
template <int Spans>
HOPFUSE_DEVICE uint64_t mark_entries(const DeviceRows& rows, const uint64_t* words, int64_t own_begin, int length) {
    constexpr int ahead = 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t following = __shfl_down_sync(WHOLE_WARP, own_begin, 1);
    const unsigned gaps = __ballot_sync(WHOLE_WARP, lane >= Spans - 1 || following != own_begin + length);
    uint64_t marks = 0;
    HOPFUSE_ROLLED
    for (int span = 0; span < Spans;) {
        const int last = span + __ffs(static_cast<int>(gaps >> span)) - 1;
        const int64_t begin = __shfl_sync(WHOLE_WARP, own_begin, span);
        const int64_t end = __shfl_sync(WHOLE_WARP, own_begin + length, last);
        HOPFUSE_ROLLED
        for (int64_t first = begin; first < end; first += 32 * ahead) {
            int32_t source[ahead];
            bool counts[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const int64_t e = first + 32 * i + lane;
                source[i] = rows.indices[e < end ? e : end - 1];
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i) counts[i] = holds_row(words, source[i]) && first + 32 * i + lane < end;
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const uint64_t found = __ballot_sync(WHOLE_WARP, counts[i]);
                const int64_t at = first + 32 * i - own_begin;  // of the span's entry that is the lowest bit
                if (at >= 0 && at < PPR_SEGMENT) marks |= found << at;
                if (at < 0 && at > -32) marks |= found >> -at;
            }
        }
        span = last + 1;
    }
    return length < PPR_SEGMENT ? marks & ((static_cast<uint64_t>(1) << length) - 1) : marks;
}

// Entries of a row that its threads read together, each every T-th one.
template <int L, int Kind>
struct Chunk {
    static constexpr int threads = row_threads<L>, size = threads > 4 ? threads : 4, each = size / threads;
    Entry own[each];

    // Reads the first `count` entries from `begin` on, at most `size`.
    __device__ void read(const DeviceRows& rows, int64_t begin, int count, int four) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            own[k] = Entry{0, 1.0f, 0};
            if (k * threads + four < count) own[k] = read_entry<Kind>(rows, begin + k * threads + four);
        }
    }

    // The source, and the weight and type, of entry i, whose number is the same in all threads of a warp.
    __device__ Entry source(int i) const {
        Entry entry = {from(own[i / threads].source, i), 1.0f, 0};
        if (Kind == edges_per_type) entry.type = from(own[i / threads].type, i);
        return entry;
    }
    __device__ Entry factor(int i) const {
        Entry entry = {0, 1.0f, 0};
        if (Kind != edges_plain) entry.weight = from(own[i / threads].weight, i);
        if (Kind >= edges_typed) entry.type = from(own[i / threads].type, i);
        return entry;
    }
    template <class T>
    __device__ static T from(T value, int i) {
        return threads == 1 ? value : __shfl_sync(WHOLE_WARP, value, i % threads, threads);
    }
};

// Sums the spans `at`, `at` + stride and so on below `last`, in entry order. `at` is that of the thread's row; of neighbouring
// rows of a warp, it differs by 1. A span is items.span(at); the sum of one longer than a segment is 0. items.read(at) is called
// before the entries are read, and items.take(at, length, what that returned, sum) after it, by whole warps and for spans from
// `last` on too. The next span, and its first entries, are read before the sum is known. `gathers`: whether any of the thread's
// lanes needs the sums. Called by whole warps.
template <int L, int Kind, class Items>
HOPFUSE_DEVICE void sum_spans(const DeviceRows& rows, const float* state, bool gathers, const Items& items) {
    using Entries = Chunk<L, Kind>;
    constexpr int ahead = Kind >= edges_typed ? 2 : 4;
    const int four = static_cast<int>(threadIdx.x) % row_threads<L>;
    const uint32_t last = static_cast<uint32_t>(items.count()), stride = gridDim.x * blockDim.x / row_threads<L>;
    uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) / row_threads<L>;
    const auto span_of = [&](uint32_t i) { return i < last ? items.span(i) : EntrySpan(0, 0); };
    EntrySpan next = span_of(at);
    int64_t begin = next.begin;
    int left = next.length();
    Entries chunk;
    chunk.read(rows, begin, left, four);
    HOPFUSE_ROLLED
    for (; __any_sync(WHOLE_WARP, at < last); at += stride) {
        const auto known = items.read(at);
        const int length = left;
        if (length > PPR_SEGMENT) left = 0;
        next = span_of(at + stride);
        float4 acc = four_times(0.0f);
        bool is_open = true;
        HOPFUSE_ROLLED
        do {
            const bool continues = left > Entries::size;
            const int counted = gathers ? left : 0;
            Entries following = chunk;
#pragma unroll
            for (int first = 0; first < Entries::size; first += ahead) {
                if (first > 0 && !__any_sync(WHOLE_WARP, left > first)) break;
                FourTerms<L, Kind> terms[ahead];
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    const Entry entry = chunk.source(first + i);
                    if (first + i < counted) terms[i].read(rows, state, entry, four);
                }
                if (first == 0 && is_open) {
                    const int64_t from = continues ? begin + Entries::size : next.begin;
                    following.read(rows, from, continues ? left - Entries::size : next.length(), four);
                }
                // So that compilers ask for all entries before they add one; without weights, they would spill.
                if (Kind != edges_plain) __syncwarp();
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    const Entry entry = chunk.factor(first + i);
                    if (first + i < counted) acc = terms[i].plus(rows, entry, four, acc);
                }
            }
            chunk = following;
            begin += Entries::size;
            left = continues ? left - Entries::size : 0;
            is_open = continues;
        } while (__any_sync(WHOLE_WARP, is_open));
        items.take(at, length, known, acc);
        begin = next.begin, left = next.length();
    }
}

}  // namespace hopfuse
