#include "boost.h"

#include "arguments/boost_weights_f32.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<BoostWeightsKernel> boost_weights_f32{{"boost_weights_f32", "boost_weights_f32"}};
constexpr int THREADS = 256;

}  // namespace

BoostedWeights boost_weights(Queue& queue, const Array<float>& weights, int64_t columns, const HitArrays& hits,
                             float strength) {
    const auto [boosted, status] = queue.arrays<float, int32_t>(weights.size(), hits.batch);
    if (hits.batch == 0) return {boosted, status};
    if (boosted.size() != 0) queue.copy(boosted, weights.data());
    queue.launch(boost_weights_f32, {hits.batch, THREADS}, boosted, columns, hits.ids, hits.scores, hits.counts,
                 to_int32(hits.k), strength, status);
    return {boosted, status};
}

}  // namespace hopfuse::device
