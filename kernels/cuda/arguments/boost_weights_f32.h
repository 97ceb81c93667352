// The arguments of boost_weights_f32.cu.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

using BoostWeightsKernel = void(float* weights, int64_t columns, const int64_t* ids, const float* scores,
                                const int64_t* counts, int k, float strength, int32_t* status);

}  // namespace hopfuse
