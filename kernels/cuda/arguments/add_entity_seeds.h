// The arguments of add_entity_seeds.cu.
#pragma once

#include "seeds.h"

namespace hopfuse {

struct EntitySeedArguments {
    SeedArguments seeds;
    const int64_t* ids;     // (B, k)
    const int64_t* counts;  // (B,)
    int32_t k;
    const int64_t* indptr;  // nodes of hits
    const int32_t* indices;
    const float* weight;  // or null: 1
    const int64_t* frequency;
    int64_t frequency_stride;
    int64_t rows;
    double mass;
    int32_t places;
    int32_t* held_node;  // (B, places)
    double* held_value;  // (B, places)
    int64_t* out_node;   // (B, width + places)
    double* out_weight;  // (B, width + places)
    int32_t* status;     // (B,)
};

using AddEntitySeedsKernel = void(EntitySeedArguments);

}  // namespace hopfuse
