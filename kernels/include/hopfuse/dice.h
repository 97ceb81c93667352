// Sørensen-Dice scores of labels against texts: the contract.
//
// FORMULA  dice(X, Y) = 2 |X and Y| / (|X| + |Y|), and 0 if both sets are empty.
//          score(candidate) = (sum over its `parts` labels of dice(its query's set, the label's set)) / parts
//
// ORDER OF OPERATIONS (law 2)  Sizes and intersections are integers. A coefficient is one float64 division; those of a
//   candidate are added in the order of its labels and the sum is divided by `parts`, in float64, then rounded to
//   float32 once. So the same labels in another order give the same score, except for sums within 2^-52 of the middle
//   between two float32 numbers.
//
// SETS      Strictly ascending. Elements of labels are 0 .. units - 1. Those of queries may be larger; an element that no
//           label has counts only in the size.
// ALIASING  The output does not overlap an input.
//
// SOURCE    Dice, Measures of the Amount of Ecologic Association Between Species, Ecology 26, 1945; Sørensen, 1948.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/scalar.h"
#include "hopfuse/status.h"

namespace hopfuse {

struct DiceSets {
    const int64_t* indptr;  // (sets + 1,)
    const int32_t* units;   // ascending within a set
};

struct DiceArgs {
    DiceSets labels;
    int32_t units;  // elements that labels may have
    DiceSets queries;
    int64_t batch;
    const int64_t* indptr;      // (B + 1,): query b has the candidates indptr[b] .. indptr[b + 1] - 1
    const int32_t* candidates;  // (Z, parts) numbers of labels
    int32_t parts;              // >= 1
    float* scores;              // (Z,)
    Execution execution;
};

// dice_f32 on a device, for `count` candidates.
using DiceKernel = void(const int64_t* label_indptr, const int32_t* label_units, const int64_t* query_indptr,
                        const int32_t* query_units, int64_t batch, const int64_t* indptr, const int32_t* candidates,
                        int32_t parts, int64_t count, float* scores);

HOPFUSE_FN double dice_coefficient(int64_t common, int64_t sizes) {
    return sizes > 0 ? static_cast<double>(2 * common) / static_cast<double>(sizes) : 0.0;
}

HOPFUSE_FN float mean_dice(double sum, int32_t parts) { return static_cast<float>(sum / static_cast<double>(parts)); }

}  // namespace hopfuse
