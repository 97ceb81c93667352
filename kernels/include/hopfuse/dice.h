// Sørensen-Dice scores of labels against texts: the contract.
//
// FORMULA  dice(X, Y) = 2 |X and Y| / (|X| + |Y|), and 0 where both sets are empty.
//          score(candidate) = (sum over its `parts` labels of dice(its query's set, the label's set)) / parts
//
// ORDER OF OPERATIONS (law 2)  Sizes and intersections are integers. A dice is one float64 division of two of them; a
//   candidate's are added in the order of its labels, the sum is divided by `parts`, all in float64, and rounded to
//   float32 once. So labels that share as much in another order have the same score, but for sums that lie within 2^-52
//   of the middle between two float32 numbers.
//
// SETS      Ascending, none twice. A label's elements are 0 .. units - 1. A query's may be more: what no label has
//           counts in the size alone.
// ALIASING  The output overlaps no input.
//
// SOURCE    Dice, Measures of the Amount of Ecologic Association Between Species, Ecology 26, 1945; Sørensen, 1948.
#pragma once

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
    int32_t threads;
};

HOPFUSE_FN double dice_coefficient(int64_t common, int64_t sizes) {
    return sizes > 0 ? static_cast<double>(2 * common) / static_cast<double>(sizes) : 0.0;
}

HOPFUSE_FN float mean_dice(double sum, int32_t parts) { return static_cast<float>(sum / static_cast<double>(parts)); }

}  // namespace hopfuse
