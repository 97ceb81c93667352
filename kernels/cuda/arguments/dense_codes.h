// The arguments of dense_codes.cu.
#pragma once

#include "dense_rows.h"
#include "topk.h"

namespace hopfuse {

constexpr int CODE_ROWS = 16;                   // rows of a tile of codes
constexpr int CODE_QUERIES = 4;                 // queries of a tile: a column of high and one of low bytes for each
constexpr int CODE_DEPTH = 32;                  // dimensions that are multiplied at once
constexpr int CODE_ALIGNMENT = 2 * CODE_DEPTH;  // to a multiple of which dimensions are padded with zeros
constexpr int CODES_THREADS = 256, CODES_WARPS = 8;
constexpr int SCAN_ROWS = 32;  // of a warp
constexpr int RAISE_THREADS = 256;

// Codes of rows, by tile and 32 dimensions: for each lane of a warp the 16 bytes that it multiplies (multiply_add_bytes of
// hopfuse/device.h). Bounds are those of hopfuse/dense_codes.h; those of rows beyond the last are 0.
struct RowCodes {
    uint32_t* codes;                   // (tiles, steps, 32 lanes, 4)
    float *scale, *error, *norm_code;  // (16 tiles,)
    int64_t rows;
    int32_t steps;  // of 32 dimensions, a multiple of 2
};

// Codes of queries: for each lane the 8 bytes that it multiplies. A code is 256 h + l; h is in column 2 i and l in column 2 i + 1 of
// query i of a tile.
struct QueryCodes {
    uint32_t* codes;  // (tiles, steps, 32 lanes, 2)
    int32_t batch, steps;
};

// What bounds the scores of a query, and the threshold: no row whose upper bound is below it can be a hit.
struct alignas(16) QueryBounds {
    float scale;  // s_q
    float norm, error;
    float threshold;
};

// The rows that a query's threshold does not rule out, in any order.
struct ScannedRows {
    uint64_t* keys;       // (batch, room): keys of upper bounds, then of canonical scores
    uint32_t* lower;      // (batch, room): the rank of the lower bound in a key
    uint32_t* count;      // (batch,) more than `room` if some did not fit
    QueryBounds* bounds;  // (batch,)
    uint32_t room;
};

// Which parts of rows a launch scans, each by a warp: those at places first to end - 1 of an order that begins with a sample of all
// parts, (place * step) % parts; step and parts have no common divisor.
struct ScanOrder {
    int64_t first, end, step, parts;
};

// Row: float, or the bits of 16-bit numbers.
template <class Row>
using DenseEncodeKernel = void(const Row* rows, int dim, int cosine, const float* norm, RowCodes out);
using DenseEncodeQueriesKernel = void(QueryVectors queries, const int32_t* status, QueryCodes out, ScannedRows found);
using DenseScanKernel = void(RowCodes rows, QueryCodes queries, ScanOrder order, RowMask mask, ScannedRows found);
using DenseRaiseKernel = void(ScannedRows found, int k);
template <class Row>
using DenseRankKernel = void(const Row* corpus, const float* row_norm, QueryVectors queries, int parts,
                             ScannedRows found);

}  // namespace hopfuse
