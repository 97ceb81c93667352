// A query's seeds, for kernels that add further seeds.
#pragma once

#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/ppr_proof.h"

namespace hopfuse {

struct SeedRow {
    const int64_t* node;
    const double* weight;
    int32_t width;

    __device__ bool holds(int i) const { return node[i] != -1; }
    __device__ bool is_good(int i) const { return !holds(i) || (weight[i] >= 0.0 && is_finite(weight[i])); }

    // The sum of the weights, in order; 0 if one is not a valid weight, which the kernel that reads the seeds reports.
    __device__ double sum() const {
        double total = 0.0;
        for (int i = 0; i < width; ++i) {
            if (!is_good(i)) return 0.0;
            if (holds(i)) total = total + weight[i];
        }
        return total;
    }
};

}  // namespace hopfuse
