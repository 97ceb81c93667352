// Weights of passages by their similarity to a query, on a device: canonical cosines, their exact sums, then the weights. Contract:
// hopfuse/similarity.h.
#pragma once

#include "corpus.h"

namespace hopfuse::device {

struct WeightOptions {
    double tau;
    float floor;
};

struct PassageWeights {
    Array<float> weights;   // (batch, rows)
    Array<int32_t> status;  // (batch,)
};

// `queries` is (batch, corpus.dim()).
PassageWeights similarity_weights(Queue& queue, const std::shared_ptr<const DeviceCorpus>& corpus,
                                  const Array<float>& queries, int64_t batch, const RowFilter& allowed,
                                  const WeightOptions& options);

}  // namespace hopfuse::device
