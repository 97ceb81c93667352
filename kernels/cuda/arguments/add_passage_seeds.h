// The arguments of add_passage_seeds.cu.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

using AddPassageSeedsKernel = void(const int64_t* node, const double* weight, int width, const int64_t* ids,
                                   const float* scores, const int64_t* counts, int k, double mass, int64_t* out_node,
                                   double* out_weight);

}  // namespace hopfuse
