// Scales node weights on a device to the range that walks read; see kernels/cuda/node_weights_f32.cu.
#pragma once

#include <cstdint>
#include <span>

#include "ppr_graph.h"

namespace hopfuse::device {

// A caller's weights of a batch.
struct GivenWeights {
    Array<float> weight;  // (B, columns)
    int64_t batch;
    std::span<const int32_t> node;   // (columns,) internal nodes
    std::span<const uint8_t> allow;  // (B, N) or, shared, (1, N) by internal node, or no address
    bool shares_allow;
    std::span<const double>
        lightest;  // (B,) the lightest edge that a query can walk, or no address: no product underflows
};

// Scaled weights, with each query's status (hopfuse/query_status.h).
struct OrderedWeights {
    Array<float> weight;  // (B, columns)
    Array<float> other;   // (B,) of all other nodes
    Array<int32_t> status;
};

OrderedWeights order_weights(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const GivenWeights& given);

}  // namespace hopfuse::device
