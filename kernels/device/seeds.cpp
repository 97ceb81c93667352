#include "seeds.h"

#include <algorithm>

#include "arguments/add_entity_seeds.h"
#include "arguments/add_passage_seeds.h"
#include "arguments/cover_seeds.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<AddPassageSeedsKernel> add_passage_seeds_f64{{"add_passage_seeds", "add_passage_seeds_f64"}};
constexpr KernelOf<AddEntitySeedsKernel> add_entity_seeds_f64{{"add_entity_seeds", "add_entity_seeds_f64"}};
constexpr KernelOf<CoverSeedsKernel> cover_seeds_f64{{"cover_seeds", "cover_seeds_f64"}};
constexpr int THREADS = 128;

SeedArguments arguments_of(const SeedArrays& seeds) { return {seeds.node, seeds.weight, to_int32(seeds.width)}; }

}  // namespace

SeedArrays add_passage_seeds(Queue& queue, const SeedArrays& seeds, const HitArrays& hits, double mass) {
    const int64_t width = seeds.width + hits.k;
    const auto [node, weight] = queue.arrays<int64_t, double>(seeds.batch * width, seeds.batch * width);
    const SeedArrays made{seeds.batch, width, node, weight};
    if (made.batch == 0 || made.width == 0) return made;
    queue.launch(add_passage_seeds_f64, {made.batch, THREADS}, seeds.node, seeds.weight, to_int32(seeds.width),
                 hits.ids, hits.scores, hits.counts, to_int32(hits.k), mass, made.node, made.weight);
    return made;
}

CheckedSeeds add_entity_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions,
                              const SeedArrays& seeds, const HitArrays& hits, const Frequency& frequency, double mass) {
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
    queue.launch(add_entity_seeds_f64, {batch, THREADS}, arguments);
    return {made, status};
}

CheckedHits cover_seeds(Queue& queue, const std::shared_ptr<const DeviceIncidence>& mentions, const SeedArrays& seeds,
                        const HitArrays& hits, double least, int64_t k) {
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
    queue.launch(cover_seeds_f64, {batch, THREADS}, arguments);
    return {best, status};
}

}  // namespace hopfuse::device
