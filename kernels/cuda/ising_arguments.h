// The argument of ising_f32; python/hopfuse/backends/cuda/arguments.py describes the same struct.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

struct IsingArguments {
    int64_t batch, width;
    const int64_t* ids;     // (batch, width)
    const float* scores;    // (batch, width)
    const int64_t* counts;  // (batch,)
    int64_t num_nodes;
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;         // or null: all 1
    const int32_t* internal_of;  // (num_nodes,)
    float coupling, temperature, relaxation;
    int32_t steps;
    float blend;
    int64_t k;
    int64_t* out_ids;      // (batch, k)
    float* out_scores;     // (batch, k)
    int64_t* out_counts;   // (batch,)
    int32_t* status;       // (batch,)
    float* coupling_room;  // width^2 per block
    double* shared_room;   // width per warp
};

}  // namespace hopfuse
