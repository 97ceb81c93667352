// The arguments of the kernels of ppr_sliced_f32.cu, and the layout of entries that they read.
#pragma once

#include "ppr_f32.h"

namespace hopfuse {

constexpr int SLICED_LANES = 4;     // L
constexpr int SLICE_THREADS = 32;   // of a warp, which adds a slice at a time
constexpr int SLICE_WIDTH = 8;      // the most entries of a thread
constexpr int SLICE_SEGMENTS = 4;   // segments of a long row in a slice, each of eight threads
constexpr int SLICE_WINDOW = 4096;  // rows that are sorted by length
constexpr uint32_t NO_ROW = 0xffffu;

// Entries of 32 threads, transposed: entry i of thread t is at 32 (line + i) + t. A row has 1, 2, 4 or 8 threads next to each other,
// as few as suffice; each has `width` of its entries, in order, the last ones fewer. Other places repeat the row's last entry.
struct alignas(16) Slice {
    uint32_t line;
    int32_t first;  // its place in `rows` or, of a long row, its number among those of the row
    int32_t row;    // the first one of the window, or the long row
    // width + 16 log2(threads of a row) + 256 (threads with entries) + 65536 (entries of the slice's last segment of a long row)
    uint32_t shape;
};

// The long row of a slice.
struct alignas(8) SliceOfLong {
    int32_t first, segments;  // of its segments
};

struct SliceTable {
    const Slice* slices;
    const SliceOfLong* of_long;  // of the first `num_long` slices
    const uint32_t* rows;        // a row's place in its window + 65536 (entries), or NO_ROW; 32 / threads for a slice
    Entries entries;
    int32_t num_slices, num_long;
};

struct SlicedArguments {
    PassArguments pass;
    SliceTable table;
    float* state;       // that the first pass reads
    uint32_t* arrived;  // (num_long,) 0 before and after a launch
};

// The rest of a walk.
struct SlicedWalkArguments {
    SlicedArguments passes;  // with the first step; its `omega` is that of all, its `measured` that of measured ones
    int64_t first_measured, last;
    uint32_t* barrier;  // of grid_barrier
};

constexpr int SLICED_BLOCK = 256;  // threads

// A number of each lane.
struct alignas(16) Lanes {
    float of[SLICED_LANES];
};

// The shared memory of a block: factors of the lanes and, if it measures, what each thread has found in each lane.
struct SlicedShared {
    Lanes damping, omega[2];  // of passes in turn
    JoinShared join;
    uint32_t whole[SLICED_LANES][SLICED_BLOCK], grains[SLICED_LANES][SLICED_BLOCK];  // of GrainSum
    float largest[SLICED_LANES][SLICED_BLOCK];
};

using SlicedPassKernel = void(SlicedArguments);
using SlicedWalkKernel = void(SlicedWalkArguments);

}  // namespace hopfuse
