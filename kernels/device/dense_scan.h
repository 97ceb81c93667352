// Exact dense top-k by the 8-bit codes of a corpus, with the kernels of kernels/cuda/dense_codes.cu.
#pragma once

#include "corpus.h"
#include "selection.h"

namespace hopfuse::device {

// Whether a search by codes keeps k rows of each query, for at most `lists` masks of rows made from id lists. It depends on the
// corpus, k and the lists alone.
bool is_scanned(Queue& queue, const DeviceCorpus& corpus, int64_t k, int64_t lists);

// The batch's best k rows. `vectors` have their norms, `status` the errors of queries. A query for which the scan keeps more rows
// than there is room for is incomplete.
void scan_codes(Queue& queue, const DeviceCorpus& corpus, const QueryVectors& vectors, const Array<int32_t>& status,
                const RowMask& mask, int64_t k, const TopkHits& hits);

}  // namespace hopfuse::device
