// The status of a query on a device, where exceptions cannot be thrown; the host raises errors for negative ones.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

enum QueryStatus : int32_t {
    status_incomplete = 0,  // the result is not proven: the query must be run again, without fixed limits
    status_complete = 1,
    status_bad_query = -1,   // NaN, infinite, or too large to score in float32
    status_zero_query = -2,  // zero, which has no cosine
    status_seed_outside = -3,
    status_bad_weight = -4,  // NaN, infinite or negative, or a sum that overflows float64
    status_seed_twice = -5,
    status_no_seed = -6,
    status_document_outside = -7,
    status_sum_beyond = -8,          // a result that overflows float32
    status_bad_score = -9,           // NaN or infinite; lower than status_sum_beyond, which it may cause
    status_faint_node_weight = -10,  // its product with the lightest edge underflows float32
    status_no_node_weight = -11,     // none is above 0
    status_bad_node_weight = -12,    // NaN, infinite or negative; lower than the two that it may cause
};

// Limits of the exact sum of a query's squares: the largest that float32 can score, and the smallest of a nonzero vector.
constexpr double DENSE_LARGEST_SQUARE = 1.7014117331926443e38;
constexpr double DENSE_SMALLEST_SQUARE = 1.1754943508222875e-38;

}  // namespace hopfuse
