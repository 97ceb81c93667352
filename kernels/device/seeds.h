// Seeds with the nodes of hits, hits that cover seeds, and boosts of passages' weights, on a device. kernels/cpu/seeds.cpp
// gives the same bits. For the binding alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "arguments/add_entity_seeds.h"
#include "arguments/add_passage_seeds.h"
#include "arguments/boost_weights_f32.h"
#include "arguments/cover_seeds.h"
#include "hits.h"
#include "incidence.h"

namespace hopfuse::device {

inline constexpr KernelOf<AddPassageSeedsKernel> add_passage_seeds_f64{{"add_passage_seeds", "add_passage_seeds_f64"}};
inline constexpr KernelOf<AddEntitySeedsKernel> add_entity_seeds_f64{{"add_entity_seeds", "add_entity_seeds_f64"}};
inline constexpr KernelOf<CoverSeedsKernel> cover_seeds_f64{{"cover_seeds", "cover_seeds_f64"}};
inline constexpr KernelOf<BoostWeightsKernel> boost_weights_f32{{"boost_weights_f32", "boost_weights_f32"}};
inline constexpr int SEED_THREADS = 128, BOOST_THREADS = 256;

// The seeds of a batch.
struct SeedArrays {
    int64_t batch = 0, width = 0;
    Array<int64_t> node;   // (B, width), -1 for none
    Array<double> weight;  // (B, width)
};

inline SeedArguments arguments_of(const SeedArrays& seeds) { return {seeds.node, seeds.weight, to_int32(seeds.width)}; }

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
inline SeedArrays add_passage_seeds(Queue& queue, const SeedArrays& seeds, const HitArrays& hits, double mass) {
    const int64_t width = seeds.width + hits.k;
    const auto [node, weight] = queue.arrays<int64_t, double>(seeds.batch * width, seeds.batch * width);
    const SeedArrays made{seeds.batch, width, node, weight};
    if (made.batch == 0 || made.width == 0) return made;
    queue.launch(add_passage_seeds_f64, {made.batch, SEED_THREADS}, seeds.node, seeds.weight, to_int32(seeds.width),
                 hits.ids, hits.scores, hits.counts, to_int32(hits.k), mass, made.node, made.weight);
    return made;
}

// Seeds with 1 - mass of the restart, and the nodes in a query's hits, which share `mass`: (B, width + places), with places for
// the most nodes that k hits can have. In a recording, whose width is fixed, places are at most Sizes::most_places; a query with
// more is incomplete. Scores of hits are not read.
inline CheckedSeeds add_entity_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions,
                                     const SeedArrays& seeds, const HitArrays& hits, const Frequency& frequency,
                                     double mass) {
    const int64_t batch = seeds.batch;
    int64_t places = hits.k * mentions->longest_row;
    if (queue.fixed()) places = std::min(places, queue.sizes().most_places);
    queue.keep(mentions);
    const int64_t width = seeds.width + places;
    const auto [node, weight, status] = queue.arrays<int64_t, double, int32_t>(batch * width, batch * width, batch);
    const SeedArrays made{batch, width, node, weight};
    if (batch == 0) return {made, status};
    auto [held_node, held_value] = queue.arrays<int32_t, double>(batch * places, batch * places);
    const EntitySeedArguments arguments{.seeds = arguments_of(seeds),
                                        .ids = hits.ids,
                                        .counts = hits.counts,
                                        .k = to_int32(hits.k),
                                        .indptr = mentions->indptr,
                                        .indices = mentions->indices,
                                        .weight = mentions->weights,
                                        .frequency = frequency.of,
                                        .frequency_stride = frequency.stride,
                                        .rows = mentions->rows,
                                        .mass = mass,
                                        .places = to_int32(places),
                                        .held_node = held_node,
                                        .held_value = held_value,
                                        .out_node = made.node,
                                        .out_weight = made.weight,
                                        .status = status};
    queue.launch(add_entity_seeds_f64, {batch, SEED_THREADS}, arguments);
    return {made, status};
}

// The first hit, and the first hit that mentions each seed, heaviest first, until k are chosen; k is at most the width of the
// hits. Seeds lighter than `least` times the heaviest are left out.
inline CheckedHits cover_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions,
                               const SeedArrays& seeds, const HitArrays& hits, double least, int64_t k) {
    const int64_t batch = seeds.batch;
    queue.keep(mentions);
    const auto [best, status] = empty_checked_hits(queue, batch, k);
    if (batch == 0) return {best, status};
    auto [first, chosen] = queue.arrays<int32_t, int32_t>(batch * seeds.width, batch * hits.k);
    const CoverArguments arguments{.seeds = arguments_of(seeds),
                                   .ids = hits.ids,
                                   .scores = hits.scores,
                                   .counts = hits.counts,
                                   .width = to_int32(hits.k),
                                   .indptr = mentions->indptr,
                                   .indices = mentions->indices,
                                   .weight = mentions->weights,
                                   .rows = mentions->rows,
                                   .least = least,
                                   .k = to_int32(k),
                                   .first = first,
                                   .chosen = chosen,
                                   .out_ids = best.ids,
                                   .out_scores = best.scores,
                                   .out_counts = best.counts,
                                   .status = status};
    queue.launch(cover_seeds_f64, {batch, SEED_THREADS}, arguments);
    return {best, status};
}

struct BoostedWeights {
    Array<float> weights;   // (B, columns)
    Array<int32_t> status;  // (B,)
};

// Weights (B, columns), those of a query's hits with score > 0 multiplied by 1 + strength (score / its largest score). Hits are
// columns; another makes the status that of a document outside.
inline BoostedWeights boost_weights(Queue& queue, const Array<float>& weights, int64_t columns, const HitArrays& hits,
                                    float strength) {
    const auto [boosted, status] = queue.arrays<float, int32_t>(weights.size(), hits.batch);
    if (hits.batch == 0) return {boosted, status};
    if (boosted.size() != 0) queue.copy(boosted, weights.data());
    queue.launch(boost_weights_f32, {hits.batch, BOOST_THREADS}, boosted, columns, hits.ids, hits.scores, hits.counts,
                 to_int32(hits.k), strength, status);
    return {boosted, status};
}

}  // namespace hopfuse::device
