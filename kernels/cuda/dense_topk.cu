// Exact dense top-k: canonical scores, and the steps around the matrix product that finds candidates. Contract and order of
// operations: hopfuse/dense_topk.h; the CPU's kernels give the same bits. Selection: topk.cu, where the bound on
// approximate scores is derived.
//
// Rows and canonical dot products: dense_rows.h.
#include "arguments/dense_topk.h"
#include "arguments/kernel_type.h"
#include "dense_product.h"
#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/query_status.h"
#include "topk_keys.h"

namespace hopfuse {

// Calls take(x) for a thread's own numbers of a row, in order, and for zeros beyond the end.
template <class Row, class Take>
HOPFUSE_DEVICE void each_number(const typename Row::Element* row, int dim, int lane, const Take& take) {
    HOPFUSE_ROLLED
    for (int64_t i = lane; i - lane < dim; i += NUMBERS_AHEAD * LANES) {
        float x[NUMBERS_AHEAD];
#pragma unroll
        for (int n = 0; n < NUMBERS_AHEAD; ++n) {
            const int64_t at = i + n * LANES;
            const float number = Row::widen(row[at < dim ? at : 0]);
            x[n] = at < dim ? number : 0.0f;
        }
#pragma unroll
        for (int n = 0; n < NUMBERS_AHEAD; ++n) take(x[n]);
    }
}

template <class Row>
HOPFUSE_DEVICE void make_norms(const typename Row::Element* rows, int64_t count, int dim, float* norm) {
    const int64_t group = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    const int lane = static_cast<int>(threadIdx.x) % LANES;
    const typename Row::Element* const row = rows + (group < count ? group : 0) * dim;
    float sum = 0.0f;
    each_number<Row>(row, dim, lane, [&](float x) { sum = fmaf(x, x, sum); });
    const float square = add_tree(sum);
    if (lane == 0 && group < count) norm[group] = sqrtf(square);
}

// Canonical norms of queries, and their status: hopfuse/query_status.h.
HOPFUSE_DEVICE void check_queries(const float* queries, int64_t count, int dim, int cosine, float* norm,
                                  int32_t* status) {
    const int64_t group = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    const int lane = static_cast<int>(threadIdx.x) % LANES;
    const float* const row = queries + (group < count ? group : 0) * dim;
    float sum = 0.0f;
    double exact = 0.0;
    each_number<Float32Row>(row, dim, lane, [&](float x) {
        sum = fmaf(x, x, sum);
        exact = exact + static_cast<double>(x) * static_cast<double>(x);
    });
    const float square = add_tree(sum);
    for (int h = LANES / 2; h > 0; h /= 2) exact = exact + __shfl_down_sync(0xffffffffu, exact, h, LANES);
    if (lane != 0 || group >= count) return;
    norm[group] = sqrtf(square);
    const bool is_good = exact <= DENSE_LARGEST_SQUARE, is_zero = cosine != 0 && exact < DENSE_SMALLEST_SQUARE;
    status[group] = !is_good ? status_bad_query : is_zero ? status_zero_query : status_complete;
}

// Scores one row of the tile for up to Q queries.
template <class Row, int Q>
HOPFUSE_DEVICE void score_row(const typename Row::Element* tile, const float* row_norm, int rows, int64_t first_row,
                              const QueryVectors& q, const RowMask& mask, const KeyColumns& out) {
    const int groups = static_cast<int>(blockDim.x) / LANES, lane = static_cast<int>(threadIdx.x) % LANES;
    const int64_t query_groups = (q.batch + Q - 1) / Q;
    const int64_t first_query = blockIdx.x % query_groups * Q;
    const int64_t column = blockIdx.x / query_groups * groups + threadIdx.x / LANES;
    const bool is_row = column < rows;
    const float* query[Q];
    float sum[Q];
    bool is_wanted[Q], is_any_wanted = false;
#pragma unroll
    for (int t = 0; t < Q; ++t) {
        const int64_t b = first_query + t < q.batch ? first_query + t : first_query;
        query[t] = q.data + b * q.dim;
        is_wanted[t] = is_row && first_query + t < q.batch && is_allowed(mask, b, column);
        is_any_wanted = is_any_wanted || is_wanted[t];
        sum[t] = 0.0f;
    }
    if (__any_sync(0xffffffffu, is_any_wanted)) {
        accumulate<Row>(query, tile + (is_row ? column : 0) * q.dim, q.dim, lane, sum);
        for (int t = 0; t < Q; ++t) sum[t] = add_tree(sum[t]);
    }
    if (lane != 0 || column >= out.columns) return;
#pragma unroll
    for (int t = 0; t < Q; ++t) {
        const int64_t b = first_query + t;
        if (b >= q.batch) continue;
        uint64_t key = 0;
        if (is_wanted[t])
            key = make_topk_key(score_of(sum[t], q.cosine, q.norm[b], row_norm[column]), first_row + column);
        put_key(out, b, column, key);
    }
}

// A listed row; -1 beyond the end.
HOPFUSE_DEVICE int64_t row_of(const ListedRows& listed, int64_t query, int64_t column) {
    if (listed.keys != nullptr) {
        const uint64_t key = column < listed.width ? listed.keys[query * listed.width + column] : 0;
        return key == 0 ? -1 : topk_key_row(key);
    }
    const int64_t list = listed.shared != 0 ? 0 : query;
    const int64_t at = listed.indptr[list] + listed.first + column;
    return at < listed.indptr[list + 1] ? listed.ids[at] : -1;
}

template <class Row>
HOPFUSE_DEVICE void score_listed(const typename Row::Element* corpus, const float* row_norm, const QueryVectors& q,
                                 const ListedRows& listed, const KeyColumns& out) {
    const int groups = static_cast<int>(blockDim.x) / LANES, lane = static_cast<int>(threadIdx.x) % LANES;
    const int64_t column_blocks = (out.columns + groups - 1) / groups;
    const int64_t b = blockIdx.x / column_blocks;
    const int64_t column = blockIdx.x % column_blocks * groups + threadIdx.x / LANES;
    const int64_t row = column < out.columns ? row_of(listed, b, column) : -1;
    const float* const query[1] = {q.data + b * q.dim};
    float sum[1] = {0.0f};
    if (__any_sync(0xffffffffu, row >= 0)) {
        accumulate<Row>(query, corpus + (row >= 0 ? row : 0) * q.dim, q.dim, lane, sum);
        sum[0] = add_tree(sum[0]);
    }
    if (lane != 0 || column >= out.columns) return;
    uint64_t key = 0;
    if (row >= 0) key = make_topk_key(score_of(sum[0], q.cosine, q.norm[b], row_norm[row]), row);
    put_key(out, b, column, key);
}

}  // namespace hopfuse

// dense_norms_TYPE: the canonical sqrt(x . x) of every row.
// Grid: 16 rows a block. Block: 256. Registers: <= 40 (occupancy 75 %). Moved: a row's bytes and 4.
#define HOPFUSE_DENSE_NORMS(name, Row)                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                  \
        name(const hopfuse::Row::Element* rows, int64_t count, int dim, float* norm) { \
        hopfuse::make_norms<hopfuse::Row>(rows, count, dim, norm);                     \
    }                                                                                  \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseNormsKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_NORMS(dense_norms_f32, Float32Row)
HOPFUSE_DENSE_NORMS(dense_norms_f16, Float16Row)
HOPFUSE_DENSE_NORMS(dense_norms_bf16, BFloat16Row)

// dense_queries_f32: the same for queries, and their status.
// Grid: 16 queries a block. Block: 256. Registers: <= 48 (occupancy 75 %). Moved: a query's bytes and 8.
extern "C" __global__ void __launch_bounds__(256)
    dense_queries_f32(const float* queries, int64_t count, int dim, int cosine, float* norm, int32_t* status) {
    hopfuse::check_queries(queries, count, dim, cosine, norm, status);
}
HOPFUSE_KERNEL_TYPE(dense_queries_f32, hopfuse::DenseQueriesKernel);

// dense_product_TYPE: dot products (batch, count) of rows and float32 queries, which find candidates. Of 16-bit rows by matrix
// units; of bfloat16 rows on compute capability 7.5, and of float32 rows, by float32 arithmetic. Rows are read as they are stored.
// `norm_floor` is that of matrix units. `out` is aligned to 16 bytes.
// Grid: ceil(count / 128) * ceil(batch / 32) blocks, the queries of the same rows side by side. Block: 128. Shared memory:
// 10752 bytes (8320 with matrix units). Registers: <= 128 (occupancy 25 %). Moved: a row's bytes for every 32 queries, the
// queries for every 128 rows, mostly from the second-level cache; 4 bytes a product.
//
// dense_product_f32: the same of float32 rows, by tiles of 128 rows and 64 queries, or 32 where there are no more.
// Grid: ceil(count / 128) * ceil(batch / 64) blocks. Block: 128. Shared memory: 12800 bytes. Registers: <= 168 (occupancy
// 18 %). Moved: as above, for every 64 queries; 12 (of 32 queries, 6) fused operations a number read from shared memory.
#define HOPFUSE_DENSE_PRODUCT(name, Row, blocks)                                                                      \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                                         \
        name(const hopfuse::Row::Element* rows, int64_t count, const hopfuse::QueryVectors queries, float norm_floor, \
             float* out) {                                                                                            \
        using Product = hopfuse::ProductOf<hopfuse::Row>;                                                             \
        __shared__ Product::Shared shared;                                                                            \
        Product::multiply(Product::Part(rows, count, queries, out), norm_floor, shared);                              \
    }                                                                                                                 \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseProductKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_PRODUCT(dense_product_f32, Float32Row, 3)
HOPFUSE_DENSE_PRODUCT(dense_product_f16, Float16Row, 4)
HOPFUSE_DENSE_PRODUCT(dense_product_bf16, BFloat16Row, 4)

// dense_mask_ids: converts ascending id lists to a mask (lists, rows) of the rows first_row .. first_row + rows.
// Grid: one block a list. Block: 256. Registers: <= 32 (occupancy 75 %). Moved: a byte a row, 8 bytes an id in the tile.
extern "C" __global__ void __launch_bounds__(256)
    dense_mask_ids(const int64_t* indptr, const int64_t* ids, int64_t first_row, int rows, uint8_t* mask) {
    const int64_t end = indptr[blockIdx.x + 1];
    uint8_t* const mine = mask + static_cast<int64_t>(blockIdx.x) * rows;
    for (int j = static_cast<int>(threadIdx.x); j < rows; j += static_cast<int>(blockDim.x)) mine[j] = 0;
    int64_t low = indptr[blockIdx.x], high = end;  // the first id of the tile, by bisection
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ids[middle] < first_row) low = middle + 1;
        else high = middle;
    }
    __syncthreads();
    for (int64_t i = low + threadIdx.x; i < end && ids[i] - first_row < rows; i += blockDim.x)
        mine[ids[i] - first_row] = 1;
}
HOPFUSE_KERNEL_TYPE(dense_mask_ids, hopfuse::DenseMaskIdsKernel);

// dense_score_TYPE: keys of the canonical scores of a tile's allowed rows; 0 for other rows and for columns beyond the rows.
// Grid: ceil(columns / 16) * ceil(batch / 4) blocks, the queries of one tile side by side. Block: 256. Registers: <= 64
// (occupancy 50 %). Moved: a row's bytes for every 4 queries, mostly from the second-level cache; 8 bytes a key.
#define HOPFUSE_DENSE_SCORE(name, Row)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        name(const hopfuse::Row::Element* tile, const float* row_norm, int rows, int64_t first_row,                    \
             const hopfuse::QueryVectors queries, const hopfuse::RowMask mask, const hopfuse::KeyColumns out) {        \
        if (queries.batch == 1)                                                                                        \
            hopfuse::score_row<hopfuse::Row, 1>(tile, row_norm, rows, first_row, queries, mask, out);                  \
        else                                                                                                           \
            hopfuse::score_row<hopfuse::Row, hopfuse::QUERIES_PER_ROW>(tile, row_norm, rows, first_row, queries, mask, \
                                                                       out);                                           \
    }                                                                                                                  \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseScoreKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_SCORE(dense_score_f32, Float32Row)
HOPFUSE_DENSE_SCORE(dense_score_f16, Float16Row)
HOPFUSE_DENSE_SCORE(dense_score_bf16, BFloat16Row)

// dense_rescore_TYPE: keys of the canonical scores of listed rows: those of candidates, given by keys, or of positions
// first .. first + columns of id lists; 0 beyond the end of a list.
// Grid: batch * ceil(columns / 16) blocks. Block: 256. Registers: <= 64 (occupancy 50 %). Moved: a row's bytes, 8 of an
// id or a key, 8 of the key made; queries come from the cache.
#define HOPFUSE_DENSE_RESCORE(name, Row)                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                         \
        name(const hopfuse::Row::Element* corpus, const float* row_norm, const hopfuse::QueryVectors queries, \
             const hopfuse::ListedRows listed, const hopfuse::KeyColumns out) {                               \
        hopfuse::score_listed<hopfuse::Row>(corpus, row_norm, queries, listed, out);                          \
    }                                                                                                         \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseRescoreKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_RESCORE(dense_rescore_f32, Float32Row)
HOPFUSE_DENSE_RESCORE(dense_rescore_f16, Float16Row)
HOPFUSE_DENSE_RESCORE(dense_rescore_bf16, BFloat16Row)
