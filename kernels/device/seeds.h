// Seeds with the nodes of hits, and hits that cover seeds, on a device. kernels/cpu/seeds.cpp gives the same bits.
#pragma once

#include <cstdint>
#include <memory>

#include "hits.h"
#include "incidence.h"

namespace hopfuse::device {

// The seeds of a batch.
struct SeedArrays {
    int64_t batch = 0, width = 0;
    Array<int64_t> node;   // (B, width), -1 for none
    Array<double> weight;  // (B, width)
};

struct CheckedSeeds {
    SeedArrays seeds;
    Array<int32_t> status;  // (B,)
};

// How many hits mention each node.
struct Frequency {
    Array<int64_t> of;   // (N,) or (B, N)
    int64_t stride = 0;  // N, or 0 if all queries share a row
};

// Seeds scaled to a sum of 1, and hits with score > 0, which share `mass` in proportion to their scores: (B, width + k).
SeedArrays add_passage_seeds(Queue& queue, const SeedArrays& seeds, const HitArrays& hits, double mass);

// Seeds with 1 - mass of the restart, and the nodes in a query's hits, which share `mass`: (B, width + places), with places for
// the most nodes that k hits can have. In a recording, whose width is fixed, places are at most Sizes::most_places; a query with
// more is incomplete. Scores of hits are not read.
CheckedSeeds add_entity_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions,
                              const SeedArrays& seeds, const HitArrays& hits, const Frequency& frequency, double mass);

// The first hit, and the first hit that mentions each seed, heaviest first, until k are chosen; k is at most the width of the
// hits. Seeds lighter than `least` times the heaviest are left out.
CheckedHits cover_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions, const SeedArrays& seeds,
                        const HitArrays& hits, double least, int64_t k);

}  // namespace hopfuse::device
