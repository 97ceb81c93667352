// Boosts of passages' weights on a device. kernels/cpu/seeds.cpp gives the same bits.
#pragma once

#include <cstdint>

#include "hits.h"

namespace hopfuse::device {

struct BoostedWeights {
    Array<float> weights;   // (B, columns)
    Array<int32_t> status;  // (B,)
};

// Weights (B, columns), those of a query's hits with score > 0 multiplied by 1 + strength (score / its largest score). Hits are
// columns; another makes the status that of a document outside.
BoostedWeights boost_weights(Queue& queue, const Array<float>& weights, int64_t columns, const HitArrays& hits,
                             float strength);

}  // namespace hopfuse::device
