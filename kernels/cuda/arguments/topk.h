// The arguments of topk.cu, and of the kernels that make its keys.
#pragma once

#include "dense_rows.h"

namespace hopfuse {

constexpr int LIST_THREADS = 128, SORT_THREADS = 256;
constexpr int KEYS_PER_THREAD = 4;  // loaded before any is compared, so that the loads overlap

// Where the keys of a tile are written: columns first .. first + columns of a query's keys, `stride` before the next query's.
struct KeyColumns {
    uint64_t* keys;
    int64_t stride, first;
    int32_t columns;
};

// Bound of approximate dot products; see dense_select_f32.
struct DotBound {
    float slack, norm_floor, underflow;
};

// The running lists of a launch, a block each, and the memory of a block.
struct RunningLists {
    int32_t splits;
    uint64_t* keys;  // (queries, splits, width)
    int32_t fresh;   // whether the lists are empty before
    int32_t width;
    int32_t room;  // keys in shared memory
};

// Hits of a batch, (B, columns) and (B,).
struct SelectedHits {
    int64_t* ids;
    float* scores;
    int64_t* counts;
    int32_t* status;
};

using DenseSelectKernel = void(const float* scores, int rows, int64_t first_row, const float* query_norm,
                               const float* row_norm, int cosine, DotBound bound, RowMask mask, RunningLists lists);
using DenseKeepKernel = void(const uint64_t* keys, int64_t stride, int columns, RunningLists lists);
using DenseSortChunkKernel = void(uint64_t* keys, int64_t length, int chunk, int64_t first_size, int64_t last_size);
using DenseSortStepKernel = void(uint64_t* keys, int64_t pairs, int64_t length, int64_t size, int64_t distance);
using TopkEmitKernel = void(const uint64_t* keys, int64_t stride, int sorts, int64_t k, int64_t columns,
                            const uint64_t* bounds, int width, const uint32_t* held, const int32_t* status,
                            SelectedHits hits, int64_t* rescored);

}  // namespace hopfuse
