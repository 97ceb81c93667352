// dice_f32 on a device. Contract: hopfuse/dice.h, whose functions it uses.
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/dice.h"

namespace hopfuse {

// The query of a candidate: the last one that begins at or before it.
HOPFUSE_DEVICE int64_t query_of(const int64_t* indptr, int64_t batch, int64_t at) {
    int64_t low = 0, high = batch;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (indptr[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

// The number of elements that two ascending sets share.
HOPFUSE_DEVICE int64_t count_common(const int32_t* a, const int32_t* a_end, const int32_t* b, const int32_t* b_end) {
    int64_t common = 0;
    while (a < a_end && b < b_end) {
        const int32_t left = *a, right = *b;
        common += left == right;
        a += left <= right;
        b += right <= left;
    }
    return common;
}

}  // namespace hopfuse

// dice_f32: the mean Dice coefficient of each candidate's labels with its query's set.
// Unit: a candidate; a thread. Block: 128. Registers: <= 48. Bytes: 4 parts + 8 log2(batch) of a candidate and, for each
// of its labels, 16 and 4 of every element of the label and of the query read; 4 written.
extern "C" __global__ void __launch_bounds__(128)
    dice_f32(const int64_t* label_indptr, const int32_t* label_units, const int64_t* query_indptr,
             const int32_t* query_units, int64_t batch, const int64_t* indptr, const int32_t* candidates, int32_t parts,
             int64_t count, float* scores) {
    using namespace hopfuse;
    const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const int64_t query = query_of(indptr, batch, at);
    const int32_t* const begin = query_units + query_indptr[query];
    const int32_t* const end = query_units + query_indptr[query + 1];
    double sum = 0.0;
    HOPFUSE_ROLLED
    for (int32_t part = 0; part < parts; ++part) {
        const int32_t label = candidates[at * parts + part];
        const int32_t* const label_begin = label_units + label_indptr[label];
        const int32_t* const label_end = label_units + label_indptr[label + 1];
        const int64_t common = count_common(begin, end, label_begin, label_end);
        sum = sum + dice_coefficient(common, (end - begin) + (label_end - label_begin));
    }
    scores[at] = mean_dice(sum, parts);
}

HOPFUSE_KERNEL_TYPE(dice_f32, hopfuse::DiceKernel);
