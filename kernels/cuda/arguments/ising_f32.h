// The arguments of ising_f32.cu.
#pragma once

#include "hopfuse/ising.h"

namespace hopfuse {

struct IsingArguments {
    int64_t batch, width;
    const int64_t* ids;     // (batch, width)
    const float* scores;    // (batch, width)
    const int64_t* counts;  // (batch,)
    IsingGraph graph;
    IsingModel model;
    int64_t k;
    int64_t* out_ids;      // (batch, k)
    float* out_scores;     // (batch, k)
    int64_t* out_counts;   // (batch,)
    int32_t* status;       // (batch,)
    float* coupling_room;  // width^2 per block
    double* shared_room;   // width per warp
};

using IsingKernel = void(IsingArguments);

}  // namespace hopfuse
