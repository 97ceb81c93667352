// The arguments of cover_seeds.cu.
#pragma once

#include "seeds.h"

namespace hopfuse {

struct CoverArguments {
    SeedArguments seeds;
    const int64_t* ids;  // (B, width)
    const float* scores;
    const int64_t* counts;
    int32_t width;
    const int64_t* indptr;  // nodes of hits, ascending
    const int32_t* indices;
    const float* weight;  // or null: 1
    int64_t rows;
    double least;
    int32_t k;         // at most `width`
    int32_t* first;    // (B, seeds.width): the first hit that mentions a seed, or the number of hits
    int32_t* chosen;   // (B, width): whether a hit is chosen
    int64_t* out_ids;  // (B, k)
    float* out_scores;
    int64_t* out_counts;
    int32_t* status;  // (B,)
};

using CoverSeedsKernel = void(CoverArguments);

}  // namespace hopfuse
