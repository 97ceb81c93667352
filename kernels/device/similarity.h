// Weights of passages by their similarity to a query, on a device: canonical cosines, their exact sums, then the weights. Contract:
// hopfuse/similarity.h. For the binding alone.
#pragma once

#include "corpus.h"

namespace hopfuse::device {

inline constexpr KernelOf<SimilaritySumsKernel> similarity_sums{{"similarity_f32", "similarity_sums_f32"}};
inline constexpr KernelOf<SimilarityWeightsKernel> similarity_weights_kernel{
    {"similarity_f32", "similarity_weights_f32"}};

struct WeightOptions {
    double tau;
    float floor;
};

struct PassageWeights {
    Array<float> weights;   // (batch, rows)
    Array<int32_t> status;  // (batch,)
};

// `queries` is (batch, corpus.dim()).
inline PassageWeights similarity_weights(Queue& queue, const std::shared_ptr<const DeviceCorpus>& corpus,
                                         const Array<float>& queries, int64_t batch, const RowFilter& allowed,
                                         const WeightOptions& options) {
    queue.keep(corpus);
    const int64_t rows = corpus->rows();
    const Array<float> weights = queue.empty<float>(static_cast<size_t>(batch * rows));
    const auto [norms, status] = queue.arrays<float, int32_t>(batch, batch);
    if (batch == 0) return {weights, status};
    check_queries(queue, queries, batch, corpus->dim(), true, norms, status);
    if (rows == 0) return {weights, status};
    const DeviceFilter there = DeviceFilter::upload(queue, allowed, batch, rows);
    Array<uint8_t> mask = there.mask;
    if (there.indptr) {
        const int64_t lists = allowed.shared ? 1 : batch;
        mask = queue.empty<uint8_t>(static_cast<size_t>(lists * rows));
        mask_of_ids(queue, there, lists, 0, rows, mask);
    }
    const Array<unsigned> largest = queue.zeros<unsigned>(static_cast<size_t>(batch));
    const Array<unsigned long long> sums = queue.zeros<unsigned long long>(static_cast<size_t>(4 * batch));
    const QueryVectors given{queries, norms, static_cast<int32_t>(batch), corpus->dim(), 1};
    const RowMask allowed_rows{mask, allowed.shared ? 0 : rows, 0};
    corpus->with_rows([&](const auto& kernels, const auto& vectors) {
        queue.launch(kernels.cosines, scoring_grid(rows, blocks(batch, QUERIES_PER_ROW)), vectors, corpus->norms(),
                     rows, given, allowed_rows, weights, largest);
    });
    const int64_t part = queue.sizes().part;
    const Grid grid{blocks(rows, part) * batch, SIMILARITY_THREADS};
    queue.launch(similarity_sums, grid, weights, rows, part, largest, sums);
    queue.launch(similarity_weights_kernel, grid, weights, rows, part, largest, sums, options.tau, options.floor);
    return {weights, status};
}

}  // namespace hopfuse::device
