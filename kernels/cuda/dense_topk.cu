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

constexpr int QUERY_NUMBERS = 4096;  // of a query, in shared memory at once

struct CheckedQuery {
    float numbers[QUERY_NUMBERS];
    double exact[QUERY_THREADS / 32];  // sums of squares, a warp each
    float norm;
};

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

// A query's numbers first .. first + QUERY_NUMBERS - 1 in shared memory, with zeros beyond the end. Returns the sum of the squares
// of the thread's own.
HOPFUSE_DEVICE double read_query(const float* query, int dim, int first, float* numbers) {
    float x[QUERY_NUMBERS / QUERY_THREADS];
    double exact = 0.0;
#pragma unroll
    for (int n = 0; n < QUERY_NUMBERS / QUERY_THREADS; ++n) {
        const int64_t at = int64_t{first} + n * QUERY_THREADS + threadIdx.x;
        x[n] = at < dim ? query[at] : 0.0f;
    }
#pragma unroll
    for (int n = 0; n < QUERY_NUMBERS / QUERY_THREADS; ++n) {
        numbers[n * QUERY_THREADS + threadIdx.x] = x[n];
        exact = exact + static_cast<double>(x[n]) * static_cast<double>(x[n]);
    }
    return exact;
}

template <class Parts>
HOPFUSE_DEVICE void split_query(const float* query, int dim, float scale, unsigned* parts) {
    const int pairs = static_cast<int>(query_parts_size(dim) / 4), width = PRODUCT_DEPTH / 2;
    HOPFUSE_ROLLED
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += QUERY_THREADS) {
        const int at = 2 * pair;
        unsigned low, high;
        split_pair<Parts>((at < dim ? query[at] : 0.0f) * scale, (at + 1 < dim ? query[at + 1] : 0.0f) * scale, low,
                          high);
        unsigned* const step = parts + pair / width * 2 * width;
        step[pair % width] = low;
        step[width + pair % width] = high;
    }
}

// The canonical norm of the block's query, its status (hopfuse/query_status.h) and its parts.
HOPFUSE_DEVICE void check_query(const float* queries, int dim, int cosine, float* norm, int32_t* status,
                                const QueryParts& out, CheckedQuery& shared) {
    const int64_t b = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x);
    const float* const query = queries + b * dim;
    float sum = 0.0f;
    double exact = 0.0;
    for (int64_t first = 0; first < dim; first += QUERY_NUMBERS) {
        exact = exact + read_query(query, dim, static_cast<int>(first), shared.numbers);
        __syncthreads();
        // In order, with zeros up to a multiple of 16 lanes and of the numbers read ahead, which change no sum.
        if (thread < LANES) {
            const int64_t left = dim - first, end = left < QUERY_NUMBERS ? left : QUERY_NUMBERS;
#pragma unroll 16
            for (int i = thread; i - thread < end; i += LANES) sum = fmaf(shared.numbers[i], shared.numbers[i], sum);
        }
        __syncthreads();
    }
    for (int h = 16; h > 0; h /= 2) exact = exact + __shfl_down_sync(0xffffffffu, exact, h);
    if (thread % 32 == 0) shared.exact[thread / 32] = exact;
    if (thread < 32) {
        const float square = add_tree(sum);
        if (thread == 0) shared.norm = sqrtf(square);
    }
    __syncthreads();
    if (out.parts != nullptr) {
        unsigned* const parts = reinterpret_cast<unsigned*>(out.parts + b * query_parts_size(dim));
        const float scale = part_scale(shared.norm + out.norm_floor);
        if (out.are_bfloats != 0) split_query<BFloat16Row>(query, dim, scale, parts);
        else split_query<Float16Row>(query, dim, scale, parts);
    }
    if (thread != 0) return;
    for (int i = 1; i < QUERY_THREADS / 32; ++i) exact = exact + shared.exact[i];
    norm[b] = shared.norm;
    const bool is_good = exact <= DENSE_LARGEST_SQUARE, is_zero = cosine != 0 && exact < DENSE_SMALLEST_SQUARE;
    status[b] = !is_good ? status_bad_query : is_zero ? status_zero_query : status_complete;
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

// Canonical scores of listed rows: 16 threads a row. Numbers of the rows and of their query are copied to shared memory some
// stages ahead, so that the accumulators, each of which waits for itself alone, never wait for global memory for long.
template <class Row>
struct ListedScores {
    using Element = typename Row::Element;
    static constexpr int STAGES = 4, NUMBERS = 1024 / sizeof(Element), PER_COPY = 16 / sizeof(Element);
    static constexpr int PADDING = 64 / sizeof(Element);  // so that the two rows of a warp are in different banks
    static constexpr int ROW_COPIES = NUMBERS / PER_COPY / LANES,
                         QUERY_COPIES = (NUMBERS / 4 - 1) / RESCORE_THREADS + 1;

    struct alignas(16) Stage {
        Element rows[RESCORE_ROWS][NUMBERS + PADDING];
        float query[NUMBERS];
    };
    struct Shared {
        Stage stages[STAGES];
    };

    const Element* row;  // of the thread, or any
    bool is_row;
    const float* query;
    int dim;

    // The thread's accumulator. Called by all threads of the block.
    __device__ float accumulate(Shared& shared) const {
        const int group = static_cast<int>(threadIdx.x) / LANES, lane = static_cast<int>(threadIdx.x) % LANES;
        const bool is_row_aligned = dim % PER_COPY == 0;
        const bool is_query_aligned = dim % 4 == 0 && reinterpret_cast<uint64_t>(query) % 16 == 0;
        const int stages = (dim + NUMBERS - 1) / NUMBERS;
        float sum = 0.0f;
        const auto read = [&](int number) {
            if (number < stages) {
                Stage& to = shared.stages[number % STAGES];
                read_row(to.rows[group], number * NUMBERS, lane, is_row_aligned);
                read_query(to.query, number * NUMBERS, is_query_aligned);
            }
            end_copies();
        };
        for (int number = 0; number + 1 < STAGES; ++number) read(number);
        HOPFUSE_ROLLED
        for (int number = 0; number < stages; ++number) {
            await_copies<STAGES - 2>();
            __syncthreads();
            read(number + STAGES - 1);
            const Stage& now = shared.stages[number % STAGES];
            const int left = dim - number * NUMBERS, end = left < NUMBERS ? left : NUMBERS;
#pragma unroll 8
            for (int i = lane; i - lane < end; i += LANES)
                sum = fmaf(now.query[i], Row::widen(now.rows[group][i]), sum);
        }
        return sum;
    }

private:
    __device__ void read_row(Element* to, int first, int lane, bool is_aligned) const {
        if (is_aligned) {
#pragma unroll
            for (int copy = 0; copy < ROW_COPIES; ++copy) {
                const int at = (lane + copy * LANES) * PER_COPY;
                const bool is_there = is_row && first + at < dim;
                copy_sixteen(to + at, is_there ? row + first + at : row, is_there);
            }
        } else {
#pragma unroll 8
            for (int i = lane; i < NUMBERS; i += LANES) to[i] = is_row && first + i < dim ? row[first + i] : Element{0};
        }
    }

    __device__ void read_query(float* to, int first, bool is_aligned) const {
        const int thread = static_cast<int>(threadIdx.x);
        if (is_aligned) {
#pragma unroll
            for (int copy = 0; copy < QUERY_COPIES; ++copy) {
                const int at = (thread + copy * RESCORE_THREADS) * 4;
                const bool is_there = first + at < dim;
                if (at < NUMBERS) copy_sixteen(to + at, is_there ? query + first + at : query, is_there);
            }
        } else {
#pragma unroll 4
            for (int i = thread; i < NUMBERS; i += RESCORE_THREADS) to[i] = first + i < dim ? query[first + i] : 0.0f;
        }
    }
};

template <class Row>
HOPFUSE_DEVICE void score_listed(const typename Row::Element* corpus, const float* row_norm, const QueryVectors& q,
                                 const ListedRows& listed, const KeyColumns& out,
                                 typename ListedScores<Row>::Shared& shared) {
    const int64_t column_blocks = (out.columns + RESCORE_ROWS - 1) / RESCORE_ROWS;
    const int64_t b = blockIdx.x / column_blocks;
    const int64_t column = blockIdx.x % column_blocks * RESCORE_ROWS + threadIdx.x / LANES;
    const int64_t row = column < out.columns ? row_of(listed, b, column) : -1;
    const ListedScores<Row> scores{corpus + (row >= 0 ? row : 0) * q.dim, row >= 0, q.data + b * q.dim, q.dim};
    float dot = 0.0f;
    if (__syncthreads_or(row >= 0 ? 1 : 0) != 0) dot = add_tree(scores.accumulate(shared));
    if (threadIdx.x % LANES != 0 || column >= out.columns) return;
    put_key(out, b, column, row >= 0 ? make_topk_key(score_of(dot, q.cosine, q.norm[b], row_norm[row]), row) : 0);
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

// dense_queries_f32: the same for queries, their status and, if they are asked for, their parts for matrix units.
// Grid: a block a query. Block: 256. Shared memory: 16456 bytes. Registers: <= 56 (occupancy 50 %). Moved: a query's bytes and 8;
// with parts, its bytes again, mostly from the first-level cache, and 4 bytes a dimension.
extern "C" __global__ void __launch_bounds__(256)
    dense_queries_f32(const float* queries, int dim, int cosine, float* norm, int32_t* status,
                      const hopfuse::QueryParts parts) {
    __shared__ hopfuse::CheckedQuery shared;
    hopfuse::check_query(queries, dim, cosine, norm, status, parts, shared);
}
HOPFUSE_KERNEL_TYPE(dense_queries_f32, hopfuse::DenseQueriesKernel);

// dense_product_TYPE: dot products (batch, count) of rows and float32 queries, which find candidates: by matrix units, or by
// float32 arithmetic (dense_product.h says which). Rows are read as they are stored. `norm_floor` is that of dense_queries_f32,
// which has made `parts`. `out` is aligned to 16 bytes.
// Grid: ceil(count / 128) * ceil(batch / 64) blocks, the queries of the same rows side by side. Block: 128. Shared memory:
// 49152 bytes (32768 on compute capability 7.5; of bfloat16 rows there 10752). Registers: <= 240 (occupancy 12 %). Moved: a row's
// bytes for every 64 queries, the queries' parts for every 128 rows, mostly from the second-level cache; 4 bytes a product.
//
// dense_product_f32: the same of float32 rows. Block: 128. Shared memory: 49152 bytes (12800 with float32 arithmetic).
// Registers: <= 168 (occupancy 12 %). Moved: as above; with float32 arithmetic, 12 (of 32 queries, 6) fused operations a number
// read from shared memory.
#define HOPFUSE_DENSE_PRODUCT(name, Row, blocks)                                                          \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                             \
        name(const hopfuse::ProductRows<hopfuse::Row::Element> rows, const hopfuse::QueryVectors queries, \
             const unsigned short* parts, float norm_floor, float* out) {                                 \
        using Product = hopfuse::ProductOf<hopfuse::Row>;                                                 \
        __shared__ Product::Shared shared;                                                                \
        Product::multiply(Product::Part(rows, queries, parts, out), norm_floor, shared);                  \
    }                                                                                                     \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseProductKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_PRODUCT(dense_product_f32, Float32Row, 3)
HOPFUSE_DENSE_PRODUCT(dense_product_f16, Float16Row, HOPFUSE_CAPABILITY >= 80 ? 3 : 2)
HOPFUSE_DENSE_PRODUCT(dense_product_bf16, BFloat16Row, 3)

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
// Grid: batch * ceil(columns / 8) blocks. Block: 128. Shared memory: 43008 bytes (of float32 rows 38912). Registers: <= 80 (occupancy
// 12 %). Moved: a row's bytes, the query's for every 8 rows, mostly from the second-level cache, 8 of an id or a key, 8 of the key
// made.
#define HOPFUSE_DENSE_RESCORE(name, Row)                                                                      \
    extern "C" __global__ void __launch_bounds__(128)                                                         \
        name(const hopfuse::Row::Element* corpus, const float* row_norm, const hopfuse::QueryVectors queries, \
             const hopfuse::ListedRows listed, const hopfuse::KeyColumns out) {                               \
        __shared__ hopfuse::ListedScores<hopfuse::Row>::Shared shared;                                        \
        hopfuse::score_listed<hopfuse::Row>(corpus, row_norm, queries, listed, out, shared);                  \
    }                                                                                                         \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseRescoreKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_RESCORE(dense_rescore_f32, Float32Row)
HOPFUSE_DENSE_RESCORE(dense_rescore_f16, Float16Row)
HOPFUSE_DENSE_RESCORE(dense_rescore_bf16, BFloat16Row)
