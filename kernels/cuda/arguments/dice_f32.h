// The arguments of dice_f32.cu.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

using DiceKernel = void(const int64_t* label_indptr, const int32_t* label_units, const int64_t* query_indptr,
                        const int32_t* query_units, int64_t batch, const int64_t* indptr, const int32_t* candidates,
                        int32_t parts, int64_t count, float* scores);

}  // namespace hopfuse
