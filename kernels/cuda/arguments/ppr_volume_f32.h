// The arguments of the kernels of ppr_volume_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

using VolumeKernel = void(PprScales, const double*, int64_t, JoinRoom, double*);

}  // namespace hopfuse
