// Vectors of queries, and masks of rows, which dense search and similarity have in common.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

constexpr int DENSE_THREADS = 256;  // of a block that computes canonical dot products
constexpr int LANES = 16;           // threads that compute one of them
constexpr int DENSE_BLOCK_ROWS = DENSE_THREADS / LANES;
constexpr int QUERIES_PER_ROW = 4;  // number of queries for which a row is read once

struct QueryVectors {
    const float* data;  // (batch, dim)
    const float* norm;  // (batch,) canonical
    int32_t batch, dim, cosine;
};

struct RowMask {
    const uint8_t* bytes;   // or null: every row is allowed
    int64_t stride, first;  // between queries; of the first row
};

}  // namespace hopfuse
