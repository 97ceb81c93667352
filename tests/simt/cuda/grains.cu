// Conversions and sums of grains.h, a thread a case or a list of cases.
#include "grains.h"

using namespace hopfuse;

extern "C" __global__ void convert_f64(const float* narrow, const double* wide, double* widened_to, float* narrowed_to,
                                       double* largest) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    widened_to[i] = widened(narrow[i]);
    narrowed_to[i] = narrowed(wide[i]);
    largest[i] = larger(fabs(wide[i]), fabs(wide[i ^ 1u]));
}

// Each thread sums 64 terms.
extern "C" __global__ void sum_grains(const double* wide, const float* narrow, const double* anchor, double* wide_sums,
                                      double* narrow_sums) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    WideGrainSum all;
    GrainSum rounded(anchor[i]);
    for (unsigned j = 64 * i; j < 64 * i + 64; ++j) {
        all.add(wide[j]);
        rounded.add(narrow[j]);
    }
    wide_sums[i] = all.value();
    narrow_sums[i] = rounded.value();
}
