// Exact dense top-k on a device: a matrix product finds candidates, canonical scores rank them, a bound proves them. Every allowed
// row is scored canonically for queries that the bound cannot prove, and in searches where it would rule out nothing.
//
// The derivation of the bound is in kernels/cuda/topk.cu and hopfuse/dense_topk.h.
#pragma once

#include "corpus.h"
#include "selection.h"

namespace hopfuse::device {

// The bound of the difference between a matrix product's dot and the canonical one, for vectors of this dimension and type.
DotBound dot_bound(int32_t dim, DenseType type);

// The k best rows of each query.
struct DenseFound {
    TopkHits hits;
    // Rows scored canonically. In a recording, where a query that the bound cannot prove keeps its status, 0.
    int64_t rescored = 0;
    // The status of each query on the host, if it was read to decide; its errors are final.
    std::vector<int32_t> status{};
    // The hits on the host, if they were read with it: ids, scores and counts, each at its offset in pinned memory.
    std::shared_ptr<std::byte[]> read{};
    size_t begins[5] = {};
};

// `queries` is (batch, corpus.dim()). `reads`: the caller wants the hits on the host.
DenseFound dense_topk(Queue& queue, const std::shared_ptr<const DeviceCorpus>& corpus, const Array<float>& queries,
                      int64_t batch, int64_t k, const RowFilter& allowed, bool reads);

}  // namespace hopfuse::device
