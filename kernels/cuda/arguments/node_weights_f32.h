// The arguments of the kernels of node_weights_f32.cu.
#pragma once

#include "hopfuse/integers.h"
#include "kernel_type.h"

namespace hopfuse {

using LargestWeightsKernel = void(const float*, int64_t, const int32_t*, const int64_t*, const int64_t*, const uint8_t*,
                                  int64_t, int64_t, int64_t, uint32_t*);
using ReadWeightsKernel = void(const float*, int64_t, int64_t, const uint32_t*, const double*, float*, float*,
                               int32_t*);

}  // namespace hopfuse
