// The arguments of dense_topk.cu.
#pragma once

#include "dense_rows.h"
#include "topk.h"

namespace hopfuse {

// Rows and queries of a block of a matrix product; of float32 rows, more queries, whose rows take twice the reading.
constexpr int PRODUCT_THREADS = 128, PRODUCT_ROWS = 128, PRODUCT_QUERIES = 32, PRODUCT_QUERIES_F32 = 64;
constexpr int PRODUCT_DEPTH = 32;  // dimensions of 16-bit rows whose products are added apart from the others'

// Rows by number: those of a list of keys, or positions of id lists.
struct ListedRows {
    const uint64_t* keys;  // (batch, width), or null
    int32_t width;
    const int64_t* indptr;  // (2,) or (batch + 1,)
    const int64_t* ids;
    int32_t shared;
    int64_t first;  // position in the id list of column 0
};

// Row: float, or the bits of 16-bit numbers.
template <class Row>
using DenseNormsKernel = void(const Row* rows, int64_t count, int dim, float* norm);
using DenseQueriesKernel = void(const float* queries, int64_t count, int dim, int cosine, float* norm, int32_t* status);
template <class Row>
using DenseProductKernel = void(const Row* rows, int64_t count, QueryVectors queries, float norm_floor, float* out);
using DenseMaskIdsKernel = void(const int64_t* indptr, const int64_t* ids, int64_t first_row, int rows, uint8_t* mask);
template <class Row>
using DenseScoreKernel = void(const Row* tile, const float* row_norm, int rows, int64_t first_row, QueryVectors queries,
                              RowMask mask, KeyColumns out);
template <class Row>
using DenseRescoreKernel = void(const Row* corpus, const float* row_norm, QueryVectors queries, ListedRows listed,
                                KeyColumns out);

}  // namespace hopfuse
