// The seeds of a batch, for kernels that add further seeds or read them.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

struct SeedArguments {
    const int64_t* node;   // (B, width), -1 for none
    const double* weight;  // (B, width)
    int32_t width;
};

}  // namespace hopfuse
