// The arguments of the kernels of ppr_local_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

using LargestScaleKernel = void(PprScales, int64_t, JoinRoom, double*);
using LocalStartKernel = void(int64_t, const float*, const float*, float*);
using LargestKernel = void(const float*, const float*, int64_t, JoinRoom, double*);

}  // namespace hopfuse
