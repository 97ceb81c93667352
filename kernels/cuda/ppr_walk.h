// What the PPR kernels share: how an entry adds to a row's sum, where restarts lie, and sums over rows and tiles. Contract:
// hopfuse/ppr.h. Device code only; a lane is a query, L lanes lie side by side in every table.
#pragma once

#include "grid_join.h"
#include "hopfuse/device.h"
#include "hopfuse/ppr.h"
#include "hopfuse/ppr_sum.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// How stored entries count.
enum EdgeKind { edges_plain, edges_weighted, edges_typed, edges_per_type };

struct DeviceRows {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;       // or null: all 1
    const uint8_t* edge_type;  // or null: one type
    const float* eta;          // (T, L) or null: all 1
    const float* scale;        // per_type: (N, T) or, per lane, (N, T, L)
    int num_types;
    int per_lane;
};

template <int L, int Kind>
HOPFUSE_DEVICE float add_entry(const DeviceRows& rows, const float* state, int64_t e, int lane, float acc) {
    const int64_t u = rows.indices[e];
    const float y = state[u * L + lane];
    if (Kind == edges_plain) return acc + y;
    if (Kind == edges_weighted) return fmaf(rows.weight[e], y, acc);
    const int type = rows.edge_type == nullptr ? 0 : rows.edge_type[e];
    if (Kind == edges_typed) {
        const float eta = rows.eta[type * L + lane];
        return fmaf(rows.weight == nullptr ? eta : rows.weight[e] * eta, y, acc);
    }
    const int64_t at = u * rows.num_types + type;
    float factor = rows.per_lane ? rows.scale[at * L + lane] : rows.scale[at];
    if (!rows.per_lane && rows.eta != nullptr) factor = factor * rows.eta[type * L + lane];
    return fmaf(rows.weight == nullptr ? 1.0f : rows.weight[e], y * factor, acc);
}

// The sum over entries begin .. end - 1, which are at most a segment.
template <int L, int Kind>
HOPFUSE_DEVICE float segment_sum(const DeviceRows& rows, const float* state, int64_t begin, int64_t end, int lane) {
    float acc = 0.0f;
    for (int64_t e = begin; e < end; ++e) acc = add_entry<L, Kind>(rows, state, e, lane, acc);
    return acc;
}

// A long row of a masked lane: segments are cut by the entries that the lane may use.
template <int L, int Kind>
HOPFUSE_DEVICE float masked_row_sum(const DeviceRows& rows, const float* state, const float* mask, int64_t begin,
                                    int64_t end, int lane) {
    float total = 0.0f, acc = 0.0f;
    int count = 0;
    for (int64_t e = begin; e < end; ++e) {
        acc = add_entry<L, Kind>(rows, state, e, lane, acc);
        count += mask[static_cast<int64_t>(rows.indices[e]) * L + lane] != 0.0f ? 1 : 0;
        if (count < PPR_SEGMENT) continue;
        total = total + acc;
        acc = 0.0f;
        count = 0;
    }
    return total + acc;
}

// What was measured of a row and is at least 0, over the row's node weight: 0 where that is 0.
HOPFUSE_DEVICE double over_attraction(double measured, float attraction) {
    const double own = static_cast<double>(attraction);
    return measured / (own > PPR_LEAST_WEIGHT ? own : PPR_LEAST_WEIGHT);
}

// The largest of what is measured of rows over their node weights: rounding keeps an order, and that of fractions is the
// order of products, which are exact in float64.
struct LargestShare {
    float measured, attraction;

    __device__ void take(float value, float weight) {
        const float least = static_cast<float>(PPR_LEAST_WEIGHT), own = weight > least ? weight : least;
        const bool is_larger = static_cast<double>(value) * static_cast<double>(attraction) >
                               static_cast<double>(measured) * static_cast<double>(own);
        measured = is_larger ? value : measured;
        attraction = is_larger ? own : attraction;
    }
    __device__ float value() const { return measured / attraction; }
};

struct TileRange {
    int64_t first, last;
    __device__ TileRange(int64_t tile, int64_t num_nodes)
        : first(tile * PPR_TILE),
          last(tile * PPR_TILE + PPR_TILE < num_nodes ? tile * PPR_TILE + PPR_TILE : num_nodes) {}
};

// A set of rows: a bit for each of a tile's 64 rows, and how many rows of the set come before the tile.
struct RowSet {
    const uint64_t* words;
    const int32_t* rank;

    __device__ bool holds(int64_t row) const { return ((words[row >> 6] >> (row & 63)) & 1u) != 0; }
    __device__ int64_t index(int64_t row) const {
        const uint64_t before = words[row >> 6] & ((static_cast<uint64_t>(1) << (row & 63)) - 1);
        return rank[row >> 6] + __popcll(before);
    }
};

// The blocked tree of scalar.h over `count` values, value(i), by a whole warp whose lane j is accumulator j. Three levels
// hold 2^30 values. Every lane of the warp gets the sum.
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

    // Takes a value that all lanes hold.
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
