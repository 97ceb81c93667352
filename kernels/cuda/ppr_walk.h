// Shared code of the PPR kernels: segments of long rows, sets of rows, and sums over rows and tiles.
// Contract: hopfuse/ppr.h. Device code only. A lane is a query; tables store L lanes side by side.
#pragma once

#include "arguments/ppr_walk.h"
#include "grid_join.h"
#include "hopfuse/device.h"
#include "hopfuse/ppr.h"
#include "hopfuse/ppr_sum.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr unsigned WHOLE_WARP = 0xffffffffu;

// The number of segments of a long row in a lane; they are cut by the entries that count.
template <int L>
HOPFUSE_DEVICE int64_t count_segments(const LongRows& r, int64_t row, int lane) {
    const int64_t first = r.first_of[row], last = r.first_of[row + 1];
    if (r.allowed == nullptr) return last - first;
    const int64_t at = (last - 1) * L + lane;
    return (r.before[at] + __popcll(r.allowed[at]) + PPR_SEGMENT - 1) / PPR_SEGMENT;
}

// Writes the sum of the masked lane's segment that begins among the entries of `segment`; at most one does. add(e, acc) adds
// an entry.
template <int L, class T, class Add>
HOPFUSE_DEVICE void masked_segment(const LongRows& r, int64_t segment, int lane, T* partial, const Add& add) {
    static_assert(PPR_SEGMENT == 64, "a bit for each entry");
    uint64_t bits = r.allowed[segment * L + lane];
    const int32_t before = r.before[segment * L + lane];
    const int32_t earlier = (PPR_SEGMENT - before % PPR_SEGMENT) % PPR_SEGMENT;  // of a segment that began before
    if (earlier >= __popcll(bits)) return;
    for (int32_t i = 0; i < earlier; ++i) bits &= bits - 1;
    const int64_t row = r.row_of[segment], last = r.first_of[row + 1];
    T acc = T(0);
    int left = PPR_SEGMENT;
    for (int64_t at = segment; at < last && left > 0; ++at) {
        if (at > segment) bits = r.allowed[at * L + lane];
        for (; bits != 0 && left > 0; bits &= bits - 1, --left)
            acc = add(r.begin[at] + __ffsll(static_cast<long long>(bits)) - 1, acc);
    }
    partial[(r.first_of[row] + (before + earlier) / PPR_SEGMENT) * L + lane] = acc;
}

// The sum of a long row, the `at`-th one, from those of its segments, in order. Many are read before the first is added, so that
// the loads overlap.
template <int L, class T, int ahead = 64 / sizeof(T)>
HOPFUSE_DEVICE T sum_of_segments(const LongRows& r, int64_t at, int lane, const T* partial) {
    const int64_t first = r.first_of[at], last = first + count_segments<L>(r, at, lane);
    T total = T(0);
    HOPFUSE_ROLLED
    for (int64_t segment = first; segment < last; segment += ahead) {
        T sums[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) sums[i] = partial[(segment + i < last ? segment + i : last - 1) * L + lane];
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (segment + i < last) total = total + sums[i];
    }
    return total;
}

// A measured value of a row, which is at least 0, divided by the row's node weight; 0 where that is 0.
HOPFUSE_DEVICE double over_attraction(double measured, float attraction) {
    constexpr float least = static_cast<float>(PPR_LEAST_WEIGHT);
    return measured / widened(attraction > least ? attraction : least);
}

HOPFUSE_DEVICE float over_attraction(float measured, float attraction) {
    constexpr float least = static_cast<float>(PPR_LEAST_WEIGHT);
    return measured / (attraction > least ? attraction : least);
}

struct TileRange {
    int64_t first, last;
    __device__ TileRange(int64_t tile, int64_t num_nodes)
        : first(tile * PPR_TILE),
          last(tile * PPR_TILE + PPR_TILE < num_nodes ? tile * PPR_TILE + PPR_TILE : num_nodes) {}
};

HOPFUSE_DEVICE bool holds_row(const uint64_t* words, int64_t row) {
    return ((words[row >> 6] >> (row & 63)) & 1u) != 0;
}

// The number of rows of a set before one of its rows.
HOPFUSE_DEVICE int64_t index_of_row(const RowSet& set, int64_t row) {
    const uint64_t before = set.words[row >> 6] & ((static_cast<uint64_t>(1) << (row & 63)) - 1);
    return set.rank[row >> 6] + __popcll(before);
}

// The blocked tree of scalar.h over `count` values, value(i), computed by a whole warp in which lane j is accumulator j. Three
// levels suffice for 2^30 values. Every lane of the warp gets the sum.
template <class T>
struct WarpTree {
    T acc[3];
    int filled[3];

    __device__ WarpTree() {
        for (int level = 0; level < 3; ++level) {
            acc[level] = T(0);
            filled[level] = 0;
        }
    }

    __device__ T reduce(int level) {
        T a = acc[level];
        for (int h = 16; h > 0; h /= 2) a = a + __shfl_down_sync(0xffffffffu, a, h);
        acc[level] = T(0);
        filled[level] = 0;
        return __shfl_sync(0xffffffffu, a, 0);
    }

    // Takes a value that is the same in all lanes.
    __device__ void push(int level, T value, int lane) {
        if (lane == (filled[level] & 31)) acc[level] = acc[level] + value;
        filled[level] += 1;
    }

    // A block of at most 1024 values of level 0 is complete.
    __device__ void close_block(int lane) {
        push(1, reduce(0), lane);
        if (filled[1] == 1024) push(2, reduce(1), lane);
    }

    __device__ T result(int lane) {
        if (filled[1] > 0) push(2, reduce(1), lane);
        return reduce(2);
    }
};

}  // namespace hopfuse
