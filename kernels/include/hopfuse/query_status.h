// What became of a query on a device, where no exception can be raised: hosts make errors of the negative ones.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

enum QueryStatus : int32_t {
    status_incomplete = 0,  // what was found is not proven: the query must be asked again, without fixed limits
    status_complete = 1,
    status_bad_query = -1,   // NaN, infinite, or too large to score in float32
    status_zero_query = -2,  // no direction under cosine
    status_seed_outside = -3,
    status_bad_weight = -4,  // NaN, infinite or negative, or a sum beyond float64
    status_seed_twice = -5,
    status_no_seed = -6,
    status_document_outside = -7,
    status_sum_beyond = -8,          // a result beyond float32
    status_bad_score = -9,           // NaN or infinite; below status_sum_beyond, which may follow from it
    status_faint_node_weight = -10,  // with the lightest edge it leaves float32's range
    status_no_node_weight = -11,     // none is above 0
    status_bad_node_weight = -12,    // NaN, infinite or negative; below the two that may follow from it
};

// Of the exact sum of a query's squares: what float32 can score, and what has a direction.
constexpr double DENSE_LARGEST_SQUARE = 1.7014117331926443e38;
constexpr double DENSE_SMALLEST_SQUARE = 1.1754943508222875e-38;

}  // namespace hopfuse
