// The arguments of dense_topk.cu.
#pragma once

#include "dense_rows.h"
#include "hopfuse/scalar.h"
#include "topk.h"

namespace hopfuse {

// Rows and queries of a block of a matrix product.
constexpr int PRODUCT_THREADS = 128, PRODUCT_ROWS = 128, PRODUCT_QUERIES = 64;
constexpr int PRODUCT_DEPTH = 32;   // dimensions whose products a matrix unit adds apart from the others'
constexpr int QUERY_THREADS = 256;  // of a block that checks a query
constexpr int RESCORE_THREADS = 128, RESCORE_ROWS = RESCORE_THREADS / LANES;

template <class Row>
struct ProductRows {
    const Row* rows;     // (count, dim)
    const float* norms;  // (count,) canonical
    int64_t count;
};

// Queries as matrix units multiply them: each times a power of two (hopfuse/dense_topk.h), as the bits of the low parts of every
// PRODUCT_DEPTH dimensions followed by those of their high parts, with zeros beyond the end. For null, nothing is written.
struct QueryParts {
    unsigned short* parts;  // (batch, query_parts_size(dim)), aligned to 16 bytes
    int32_t are_bfloats;
    float norm_floor;
};

HOPFUSE_FN int64_t query_parts_size(int32_t dim) {
    return int64_t{2} * ((dim + PRODUCT_DEPTH - 1) / PRODUCT_DEPTH) * PRODUCT_DEPTH;
}

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
using DenseQueriesKernel = void(const float* queries, int dim, int cosine, float* norm, int32_t* status,
                                QueryParts parts);
template <class Row>
using DenseProductKernel = void(ProductRows<Row> rows, QueryVectors queries, const unsigned short* parts,
                                float norm_floor, float* out);
using DenseMaskIdsKernel = void(const int64_t* indptr, const int64_t* ids, int64_t first_row, int rows, uint8_t* mask);
template <class Row>
using DenseScoreKernel = void(const Row* tile, const float* row_norm, int rows, int64_t first_row, QueryVectors queries,
                              RowMask mask, KeyColumns out);
template <class Row>
using DenseRescoreKernel = void(const Row* corpus, const float* row_norm, QueryVectors queries, ListedRows listed,
                                KeyColumns out);

}  // namespace hopfuse
