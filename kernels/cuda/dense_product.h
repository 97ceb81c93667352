// Matrix products of 16-bit rows and float32 queries, which find candidates: sums that differ from the exact ones by less than
// the bound of hopfuse/dense_topk.h. By matrix units, or by float32 arithmetic where these cannot multiply the rows' type.
//
// A block multiplies 128 rows and 32 queries, 32 dimensions at a time, and adds the sums of these in float32.
#pragma once

#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int PRODUCT_ROWS = 128, PRODUCT_QUERIES = 32, PRODUCT_DEPTH = 32, PRODUCT_THREADS = 128;

// The part of a product that is this block's. Positions in it fit 32 bits: 128 rows of at most 2^20 numbers.
struct ProductPart {
    const unsigned short* rows;  // (num_rows, dim)
    const float* queries;        // (num_queries, dim)
    const float* norms;          // (num_queries,)
    int num_rows, num_queries, dim;
    float* out;
    int64_t stride;  // between queries in out

    __device__ ProductPart(const unsigned short* all_rows, int64_t count, const Queries& q, float* all_out) {
        const int64_t query_blocks = (q.batch + PRODUCT_QUERIES - 1) / PRODUCT_QUERIES;
        const int64_t first_query = blockIdx.x % query_blocks * PRODUCT_QUERIES;
        const int64_t first_row = blockIdx.x / query_blocks * PRODUCT_ROWS;
        rows = all_rows + first_row * q.dim;
        queries = q.data + first_query * q.dim;
        norms = q.norm + first_query;
        num_rows = static_cast<int>(count - first_row < PRODUCT_ROWS ? count - first_row : PRODUCT_ROWS);
        num_queries =
            static_cast<int>(q.batch - first_query < PRODUCT_QUERIES ? q.batch - first_query : PRODUCT_QUERIES);
        dim = q.dim;
        out = all_out + first_query * count + first_row;
        stride = count;
    }

    __device__ void put(int query, int row, float product) const {
        if (query < num_queries && row < num_rows) out[query * stride + row] = product;
    }
};

// ---- Matrix units ----------------------------------------------------------------------------------------------------
//
// A query times a power of two is the sum of a high and a low 16-bit part. A warp multiplies 32 rows, which its threads read
// straight into registers, and all queries of the block, whose parts are in shared memory. Thread 4 g + t has eight adjacent
// dimensions, from 8 t on, of rows g + 8 j and queries g + 8 j: the order of dimensions in a sum is free.

// 2^(14 - e) for 2^e <= size < 2^(e + 1).
HOPFUSE_DEVICE float query_scale(float size) {
    return bits_to_float((268u - ((float_to_bits(size) >> 23) & 255u)) << 23);
}

// 1 / scale, exactly.
HOPFUSE_DEVICE float inverse_scale(float scale) { return bits_to_float((254u << 23) - float_to_bits(scale)); }

// Eight numbers of a row from dimension `at` on, 0 beyond the end. Rows of a multiple of eight numbers are aligned to 16 bytes.
HOPFUSE_DEVICE uint4 read_eight(const unsigned short* row, int at, int dim) {
    if (dim % 8 == 0) return at < dim ? *reinterpret_cast<const uint4*>(row + at) : make_uint4(0, 0, 0, 0);
    unsigned number[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) number[i] = at + i < dim ? row[at + i] : 0;
    return make_uint4(number[0] | number[1] << 16, number[2] | number[3] << 16, number[4] | number[5] << 16,
                      number[6] | number[7] << 16);
}

template <class Row>
struct MatrixProduct {
    static constexpr int WARP = 32, WARP_ROWS = PRODUCT_ROWS / (PRODUCT_THREADS / WARP), LINES = WARP_ROWS / 8;
    static constexpr int ROW_TILES = WARP_ROWS / 16, QUERY_TILES = PRODUCT_QUERIES / 8, PARTS = 2;
    static constexpr int PAIRS = PRODUCT_DEPTH / 2, SPLIT_STEP = PRODUCT_THREADS / PAIRS;
    static constexpr int SPLITS = PRODUCT_QUERIES / SPLIT_STEP;

    // Parts of queries in two buffers: one is multiplied while the other is filled.
    struct Shared {
        uint4 parts[2][PARTS][PRODUCT_QUERIES][PRODUCT_DEPTH / 8];  // low, high
        float scale[PRODUCT_QUERIES];
    };

    __device__ static void multiply(const ProductPart& part, float norm_floor, Shared& shared) {
        const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, group = lane / 4, member = lane % 4;
        const int first_row = thread / WARP * WARP_ROWS + group;
        float sums[ROW_TILES][QUERY_TILES][4] = {};
        if (thread < PRODUCT_QUERIES)
            shared.scale[thread] = thread < part.num_queries ? query_scale(part.norms[thread] + norm_floor) : 1.0f;
        uint4 now[LINES], next[LINES];
        float numbers[SPLITS][2];
        read_rows(part, first_row, 8 * member, now);
        read_queries(part, 0, numbers);
        __syncthreads();
        split(numbers, shared, 0);
        int buffer = 0;
        HOPFUSE_ROLLED
        for (int depth = 0; depth < part.dim; depth += PRODUCT_DEPTH) {
            __syncthreads();
            read_rows(part, first_row, depth + PRODUCT_DEPTH + 8 * member, next);
            read_queries(part, depth + PRODUCT_DEPTH, numbers);
#pragma unroll
            for (int tile = 0; tile < QUERY_TILES; ++tile)
                if (8 * tile < part.num_queries) {
                    const int query = 8 * tile + group;
                    add_products(now, shared.parts[buffer][0][query][member], shared.parts[buffer][1][query][member],
                                 tile, sums);
                }
            buffer = 1 - buffer;
            split(numbers, shared, buffer);
#pragma unroll
            for (int j = 0; j < LINES; ++j) now[j] = next[j];
        }
#pragma unroll
        for (int tile = 0; tile < QUERY_TILES; ++tile)
#pragma unroll
            for (int i = 0; i < ROW_TILES * 4; ++i) {
                const int query = 8 * tile + 2 * member + i % 2, row = first_row + i / 2 * 8;
                part.put(query, row, sums[i / 4][tile][i % 4] * inverse_scale(shared.scale[query]));
            }
    }

private:
    // Eight dimensions of every eighth row; a row beyond the end is the last one again.
    __device__ static void read_rows(const ProductPart& part, int first, int at, uint4 (&lines)[LINES]) {
#pragma unroll
        for (int j = 0; j < LINES; ++j) {
            const int row = first + 8 * j < part.num_rows ? first + 8 * j : part.num_rows - 1;
            lines[j] = read_eight(part.rows + row * part.dim, at, part.dim);
        }
    }

    // The thread's two dimensions of every eighth query, 0 beyond the end.
    __device__ static void read_queries(const ProductPart& part, int depth, float (&numbers)[SPLITS][2]) {
        const int at = depth + 2 * (static_cast<int>(threadIdx.x) % PAIRS);
#pragma unroll
        for (int i = 0; i < SPLITS; ++i) {
            const int query = static_cast<int>(threadIdx.x) / PAIRS + i * SPLIT_STEP;
#pragma unroll
            for (int j = 0; j < 2; ++j)
                numbers[i][j] =
                    query < part.num_queries && at + j < part.dim ? part.queries[query * part.dim + at + j] : 0.0f;
        }
    }

    __device__ static void split(const float (&numbers)[SPLITS][2], Shared& shared, int buffer) {
        const int pair = static_cast<int>(threadIdx.x) % PAIRS;
#pragma unroll
        for (int i = 0; i < SPLITS; ++i) {
            const int query = static_cast<int>(threadIdx.x) / PAIRS + i * SPLIT_STEP;
            unsigned low = 0, high = 0;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float scaled = numbers[i][j] * shared.scale[query];
                const unsigned short rounded = Row::narrow(scaled);
                high |= static_cast<unsigned>(rounded) << (16 * j);
                low |= static_cast<unsigned>(Row::narrow(scaled - Row::widen(rounded))) << (16 * j);
            }
            reinterpret_cast<unsigned*>(shared.parts[buffer][0][query])[pair] = low;
            reinterpret_cast<unsigned*>(shared.parts[buffer][1][query])[pair] = high;
        }
    }

    // Sums of 32 dimensions start at 0, with the low parts, so that they lose little; then they are added to the rest.
    __device__ static void add_products(const uint4 (&lines)[LINES], const uint4& low, const uint4& high, int tile,
                                        float (&sums)[ROW_TILES][QUERY_TILES][4]) {
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            const uint4 &top = lines[2 * m], &bottom = lines[2 * m + 1];
            const unsigned first[4] = {top.x, bottom.x, top.y, bottom.y},
                           second[4] = {top.z, bottom.z, top.w, bottom.w};
            float sum[4] = {};
            multiply_add<Row::IS_BFLOAT>(sum, first, {low.x, low.y});
            multiply_add<Row::IS_BFLOAT>(sum, second, {low.z, low.w});
            multiply_add<Row::IS_BFLOAT>(sum, first, {high.x, high.y});
            multiply_add<Row::IS_BFLOAT>(sum, second, {high.z, high.w});
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[m][tile][i] = sums[m][tile][i] + sum[i];
        }
    }
};

// ---- Float32 arithmetic ----------------------------------------------------------------------------------------------
//
// A thread multiplies 8 rows and 4 queries, widened in shared memory.

template <class Row>
struct WideProduct {
    static constexpr int ROW_LANES = 16, QUERY_LANES = PRODUCT_THREADS / ROW_LANES;
    static constexpr int OWN_ROWS = PRODUCT_ROWS / ROW_LANES, OWN_QUERIES = PRODUCT_QUERIES / QUERY_LANES;

    // One number more than a line has, so that threads write to different banks.
    struct Shared {
        float rows[PRODUCT_DEPTH][PRODUCT_ROWS + 1];
        float queries[PRODUCT_DEPTH][PRODUCT_QUERIES + 1];
    };

    __device__ static void multiply(const ProductPart& part, float, Shared& shared) {
        const int row_lane = static_cast<int>(threadIdx.x) % ROW_LANES;
        const int query_lane = static_cast<int>(threadIdx.x) / ROW_LANES;
        float sums[OWN_QUERIES][OWN_ROWS] = {};
        for (int depth = 0; depth < part.dim; depth += PRODUCT_DEPTH) {
            load_lines<Row, PRODUCT_ROWS>(part.rows, part.num_rows, part.dim, depth, shared.rows);
            load_lines<Float32Row, PRODUCT_QUERIES>(part.queries, part.num_queries, part.dim, depth, shared.queries);
            __syncthreads();
            add_products(shared, row_lane, query_lane, sums);
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < OWN_QUERIES; ++i)
#pragma unroll
            for (int j = 0; j < OWN_ROWS; ++j)
                part.put(query_lane + i * QUERY_LANES, row_lane + j * ROW_LANES, sums[i][j]);
    }

private:
    // Copies the values (count, dim) from dimension `depth` on to shared memory; 0 beyond the end.
    template <class Numbers, int Lines>
    __device__ static void load_lines(const typename Numbers::Element* values, int count, int dim, int depth,
                                      float (&to)[PRODUCT_DEPTH][Lines + 1]) {
        const int column = static_cast<int>(threadIdx.x) % PRODUCT_DEPTH;
#pragma unroll 8
        for (int line = static_cast<int>(threadIdx.x) / PRODUCT_DEPTH; line < Lines;
             line += PRODUCT_THREADS / PRODUCT_DEPTH) {
            const bool is_inside = line < count && depth + column < dim;
            to[column][line] = is_inside ? Numbers::widen(values[line * dim + depth + column]) : 0.0f;
        }
    }

    __device__ static void add_products(const Shared& shared, int row_lane, int query_lane,
                                        float (&sums)[OWN_QUERIES][OWN_ROWS]) {
        float sum[OWN_QUERIES][OWN_ROWS] = {};
#pragma unroll 4
        for (int column = 0; column < PRODUCT_DEPTH; ++column) {
            float x[OWN_ROWS];
#pragma unroll
            for (int j = 0; j < OWN_ROWS; ++j) x[j] = shared.rows[column][row_lane + j * ROW_LANES];
#pragma unroll
            for (int i = 0; i < OWN_QUERIES; ++i) {
                const float q = shared.queries[column][query_lane + i * QUERY_LANES];
#pragma unroll
                for (int j = 0; j < OWN_ROWS; ++j) sum[i][j] = fmaf(q, x[j], sum[i][j]);
            }
        }
#pragma unroll
        for (int i = 0; i < OWN_QUERIES; ++i)
#pragma unroll
            for (int j = 0; j < OWN_ROWS; ++j) sums[i][j] = sums[i][j] + sum[i][j];
    }
};

template <bool HasUnits, class Row>
struct ChosenProduct : MatrixProduct<Row> {};
template <class Row>
struct ChosenProduct<false, Row> : WideProduct<Row> {};

template <class Row>
using ProductOf = ChosenProduct<!Row::IS_BFLOAT || HOPFUSE_CAPABILITY >= 80, Row>;

}  // namespace hopfuse
