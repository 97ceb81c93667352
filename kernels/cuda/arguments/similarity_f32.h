// The arguments of similarity_f32.cu.
#pragma once

#include "dense_rows.h"

namespace hopfuse {

constexpr int SIMILARITY_THREADS = 256;

// Row: float, or the bits of 16-bit numbers.
template <class Row>
using SimilarityCosinesKernel = void(const Row* rows, const float* row_norm, int64_t count, QueryVectors queries,
                                     RowMask mask, float* out, unsigned* largest);
using SimilaritySumsKernel = void(const float* cosines, int64_t count, int64_t part, const unsigned* largest,
                                  unsigned long long* sums);
using SimilarityWeightsKernel = void(float* cosines, int64_t count, int64_t part, const unsigned* largest,
                                     const unsigned long long* sums, double tau, float floor);

}  // namespace hopfuse
