// The arguments of fuse_f32.cu.
#pragma once

#include "hopfuse/fuse.h"

namespace hopfuse {

// The lists of a launch of fuse: the rows of list l are (B, width), after those of earlier lists.
struct FlatLists {
    int64_t batch;
    int32_t lists;
    const int64_t* starts;  // (L + 1,) sums of widths
    const int64_t* counts;  // (L, B)
    const int64_t* pools;   // (L,) the largest number of entries used of a list
};

// The inputs of list values, and where the values are written, in the same layout as the scores.
struct ListValues {
    const float* scores;
    CalibrationRule calibration;
    float* values;
};

struct FuseArguments {
    FlatLists lists;
    const int64_t* ids;
    ListValues values;
    FusionMethod method;
    FusionOptions option;
    const float* weights;  // (L,), or with weight_step = L (B, L)
    int64_t weight_step;   // from a query's weights to the next one's; 0 if all queries share them
    Finish finish;
    int64_t k;
    int64_t* out_ids;     // (B, k)
    float* out_scores;    // (B, k)
    int64_t* out_counts;  // (B,)
    int64_t size;         // of the buffer for sorting, in entries: a power of two
    uint8_t* room;        // a buffer for each block, or null: shared memory
    int32_t is_counted;   // whether entries are put in order by counting, in shared memory
};

// Up to this many entries, counting takes less time than sorting; bytes of shared memory of an entry that is counted.
constexpr int64_t FUSE_COUNTED = 512, FUSE_COUNTED_BYTES = 2 * sizeof(Entry) + sizeof(float);

// Lists of a call, from number `first` on.
constexpr int FUSE_LISTS = 8;
struct GivenList {
    const int64_t* ids;     // (batch, width)
    const float* scores;    // (batch, width)
    const int64_t* counts;  // (batch,)
    int64_t width, start;   // and the sum of the widths of earlier lists
};
struct GivenLists {
    int32_t first, lists;
    GivenList list[FUSE_LISTS];
};

using CalibrateKernel = void(int64_t batch, int64_t width, const float* scores, const int64_t* counts,
                             CalibrationRule rule, float* out);
using FuseListsKernel = void(int64_t batch, GivenLists given, int64_t* all_ids, float* all_scores, int64_t* all_counts);
using FuseKernel = void(FuseArguments);

}  // namespace hopfuse
