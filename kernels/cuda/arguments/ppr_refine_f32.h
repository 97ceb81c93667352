// The arguments of the kernels of ppr_refine_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

using RefineMeasureKernel = void(PprScales, int64_t, const float*, JoinRoom, double*);
using RefineEndKernel = void(PprScales, const int32_t*, int64_t, const float*, float*, JoinRoom, double*);

}  // namespace hopfuse
