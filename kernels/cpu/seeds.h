// Restarts from seeds and hits, the hits that cover seeds, and boosted weights. One thread, in the same order of operations as
// kernels/cuda/add_passage_seeds.cu, add_entity_seeds.cu, cover_seeds.cu and boost_weights_f32.cu, which state the formulas:
// both give the same bits. The inputs are checked: hits are rows of the incidence or columns, each at most once in a query.
#pragma once

#include <cstdint>

#include "hopfuse/status.h"

namespace hopfuse {

// Seeds (B, width): distinct nodes, -1 for none, with weights that are finite and at least 0, and 0 where there is none.
struct GivenSeeds {
    int64_t batch, width;
    const int64_t* node;
    const double* weight;
};

// Hits (B, width), of which the first counts[b] are valid.
struct GivenHits {
    int64_t width;
    const int64_t* ids;
    const float* scores;  // null where they do not matter
    const int64_t* counts;
};

// The nodes of passages: rows of ascending columns.
struct GivenMentions {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weights;  // or null: 1
};

// A row of each query: (B, width of the output).
struct SeedRows {
    int64_t* node;
    double* weight;
};

struct HitRows {
    int64_t* ids;
    float* scores;
    int64_t* counts;  // (B,)
};

// Rows of seeds.width + hits.width: the seeds, scaled to sum 1, and the hits with a score above 0, which share `mass`.
void add_passage_seeds(const GivenSeeds& seeds, const GivenHits& hits, double mass, const SeedRows& out);

// The most entries that the hits of a query have: the places that add_entity_seeds needs.
int64_t most_entries(const GivenHits& hits, int64_t batch, const int64_t* indptr);

// Rows of seeds.width + places: the seeds, and the nodes of the hits, which share `mass`. `frequency` has a row per query,
// `frequency_stride` apart, or with a stride of 0 one row for all.
Status add_entity_seeds(const GivenSeeds& seeds, const GivenHits& hits, const GivenMentions& mentions,
                        const int64_t* frequency, int64_t frequency_stride, double mass, int64_t places,
                        const SeedRows& out);

// Rows of k, at most hits.width: the first hit, and the first hit that mentions each seed, heaviest first, until there are k.
Status cover_seeds(const GivenSeeds& seeds, const GivenHits& hits, const GivenMentions& mentions, double least,
                   int64_t k, const HitRows& out);

// Multiplies, in place, the weights (B, columns) of hits with a score above 0.
void boost_weights(float* weights, int64_t batch, int64_t columns, const GivenHits& hits, float strength);

}  // namespace hopfuse
