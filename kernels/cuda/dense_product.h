// Matrix products of rows and float32 queries, which find candidates: sums that differ from the exact ones by less than a bound.
// Of 16-bit rows by matrix units, with the bound of hopfuse/dense_topk.h; of float32 rows, and where no unit multiplies the rows'
// type, by float32 arithmetic: topk.cu derives the bound of float32 sums in any order.
#pragma once

#include "arguments/dense_topk.h"
#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// The part of a product that is this block's. Positions in it fit 32 bits: 128 rows of at most 2^20 numbers.
template <class Row, int Queries>
struct ProductPart {
    const typename Row::Element* rows;  // (num_rows, dim)
    const float* queries;               // (num_queries, dim)
    const float* norms;                 // (num_queries,)
    int num_rows, num_queries, dim;
    float* out;
    int64_t stride;  // between queries in out

    __device__ ProductPart(const typename Row::Element* all_rows, int64_t count, const QueryVectors& q,
                           float* all_out) {
        const int64_t query_blocks = (q.batch + Queries - 1) / Queries;
        const int64_t first_query = blockIdx.x % query_blocks * Queries;
        const int64_t first_row = blockIdx.x / query_blocks * PRODUCT_ROWS;
        rows = all_rows + first_row * q.dim;
        queries = q.data + first_query * q.dim;
        norms = q.norm + first_query;
        num_rows = static_cast<int>(count - first_row < PRODUCT_ROWS ? count - first_row : PRODUCT_ROWS);
        num_queries = static_cast<int>(q.batch - first_query < Queries ? q.batch - first_query : Queries);
        dim = q.dim;
        out = all_out + first_query * count + first_row;
        stride = count;
    }

    __device__ void put(int query, int row, float product) const {
        if (query < num_queries && row < num_rows) out[query * stride + row] = product;
    }

    // Products of four adjacent rows; `row` is a multiple of 4.
    __device__ void put_four(int query, int row, float4 products) const {
        if (stride % 4 != 0) {
            put(query, row, products.x), put(query, row + 1, products.y);
            put(query, row + 2, products.z), put(query, row + 3, products.w);
        } else if (query < num_queries && row < num_rows) {
            store_four(out + query * stride + row, products);
        }
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
    using Part = ProductPart<Row, PRODUCT_QUERIES>;
    static constexpr int WARP = 32, WARP_ROWS = PRODUCT_ROWS / (PRODUCT_THREADS / WARP), LINES = WARP_ROWS / 8;
    static constexpr int ROW_TILES = WARP_ROWS / 16, QUERY_TILES = PRODUCT_QUERIES / 8, PARTS = 2;
    static constexpr int PAIRS = PRODUCT_DEPTH / 2, SPLIT_STEP = PRODUCT_THREADS / PAIRS;
    static constexpr int SPLITS = PRODUCT_QUERIES / SPLIT_STEP;

    // Parts of queries in two buffers: one is multiplied while the other is filled.
    struct Shared {
        uint4 parts[2][PARTS][PRODUCT_QUERIES][PRODUCT_DEPTH / 8];  // low, high
        float scale[PRODUCT_QUERIES];
    };

    __device__ static void multiply(const Part& part, float norm_floor, Shared& shared) {
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
    __device__ static void read_rows(const Part& part, int first, int at, uint4 (&lines)[LINES]) {
#pragma unroll
        for (int j = 0; j < LINES; ++j) {
            const int row = first + 8 * j < part.num_rows ? first + 8 * j : part.num_rows - 1;
            lines[j] = read_eight(part.rows + row * part.dim, at, part.dim);
        }
    }

    // The thread's two dimensions of every eighth query, 0 beyond the end.
    __device__ static void read_queries(const Part& part, int depth, float (&numbers)[SPLITS][2]) {
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
// A warp multiplies 64 rows and half of the block's queries, a thread two or four groups of four rows and four queries each. Rows
// and queries lie in shared memory dimension by dimension, 8 at a time in two buffers: one is multiplied while the other is filled.
// In a quarter of a warp, whose 128-bit loads are one access, four threads have the same queries and two the same rows.

// Whether lines can be read by four numbers.
template <class T>
HOPFUSE_DEVICE bool is_in_fours(const T* lines, int dim) {
    return dim % 4 == 0 && reinterpret_cast<uint64_t>(lines) % (4 * sizeof(T)) == 0;
}

// Four numbers of a line from dimension `at` on, 0 beyond the end.
template <class Row>
HOPFUSE_DEVICE float4 read_four(const typename Row::Element* line, int at, int dim, bool in_fours) {
    if (in_fours) return at < dim ? Row::widen_four(line + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float number[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) number[i] = at + i < dim ? Row::widen(line[at + i]) : 0.0f;
    return make_float4(number[0], number[1], number[2], number[3]);
}

template <class Row, int Queries>
struct TiledProduct {
    using Part = ProductPart<Row, Queries>;
    static constexpr int DEPTH = 8, WARP = 32, WARP_ROWS = 64, GROUP = 4;
    static constexpr int ROW_LANES = 8, QUERY_LANES = 4, ROW_GROUPS = WARP_ROWS / (ROW_LANES * GROUP);
    static constexpr int QUERY_WARPS = PRODUCT_THREADS / WARP / (PRODUCT_ROWS / WARP_ROWS);
    // Whether the sums of PRODUCT_DEPTH dimensions begin at 0, as those of matrix units, and are then added to the rest.
    static constexpr bool ADDS_PARTS = sizeof(typename Row::Element) == 2;

    // Four numbers more than a line has, so that threads write to different banks.
    struct alignas(16) Shared {
        float rows[2][DEPTH][PRODUCT_ROWS + 4];
        float queries[2][DEPTH][Queries + 4];
    };

    __device__ static void multiply(const Part& part, float, Shared& shared) {
        if constexpr (Queries > PRODUCT_QUERIES) {
            if (part.num_queries > PRODUCT_QUERIES) return multiply_some<Queries>(part, shared);
        }
        multiply_some<PRODUCT_QUERIES>(part, shared);
    }

private:
    // A place in a warp's and a block's part of the product, of the first of four rows and of four queries.
    template <int Width>
    struct Place {
        static constexpr int QUERY_GROUPS = Width / (QUERY_WARPS * QUERY_LANES * GROUP);
        int row, query;

        __device__ static Place of(int thread) {
            const int warp = thread / WARP, lane = thread % WARP;
            return {warp / QUERY_WARPS * WARP_ROWS + lane / 2 % ROW_LANES * GROUP,
                    warp % QUERY_WARPS * (Width / QUERY_WARPS) + (lane % 2 + lane / 16 * 2) * GROUP};
        }
        __device__ int row_of(int group) const { return row + group * ROW_LANES * GROUP; }
        __device__ int query_of(int group) const { return query + group * QUERY_LANES * GROUP; }
    };

    // Numbers that a thread reads ahead: four adjacent dimensions of some of `Lines` lines. Two threads read the 32 bytes of a line.
    template <class Numbers, int Lines>
    struct Ahead {
        static constexpr int STEP = PRODUCT_THREADS / 2, COUNT = (Lines + STEP - 1) / STEP;
        static_assert(DEPTH == 2 * GROUP, "two threads read a line");
        float4 numbers[COUNT];
        int first, column;

        __device__ Ahead()
            : first(static_cast<int>(threadIdx.x) / 2), column(static_cast<int>(threadIdx.x) % 2 * GROUP) {}

        // A line beyond the end is the last one again.
        __device__ void read(const typename Numbers::Element* lines, int count, int dim, int depth, bool in_fours) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (Lines % STEP != 0 && first + i * STEP >= Lines) return;
                const int line = first + i * STEP < count ? first + i * STEP : count - 1;
                numbers[i] = read_four<Numbers>(lines + line * dim, depth + column, dim, in_fours);
            }
        }
        template <int Width>
        __device__ void write(float (&to)[DEPTH][Width]) const {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const int line = first + i * STEP;
                if (Lines % STEP != 0 && line >= Lines) return;
                to[column][line] = numbers[i].x;
                to[column + 1][line] = numbers[i].y;
                to[column + 2][line] = numbers[i].z;
                to[column + 3][line] = numbers[i].w;
            }
        }
    };

    template <int Width>
    using Sums = float[Place<Width>::QUERY_GROUPS * GROUP][ROW_GROUPS * GROUP];

    // Up to `Width` queries.
    template <int Width>
    __device__ static void multiply_some(const Part& part, Shared& shared) {
        const Place<Width> place = Place<Width>::of(static_cast<int>(threadIdx.x));
        const bool rows_in_fours = is_in_fours(part.rows, part.dim);
        const bool queries_in_fours = is_in_fours(part.queries, part.dim);
        Sums<Width> sums = {}, totals = {};
        Ahead<Row, PRODUCT_ROWS> rows;
        Ahead<Float32Row, Width> queries;
        const auto read = [&](int depth) {
            rows.read(part.rows, part.num_rows, part.dim, depth, rows_in_fours);
            queries.read(part.queries, part.num_queries, part.dim, depth, queries_in_fours);
        };
        read(0);
        rows.write(shared.rows[0]);
        queries.write(shared.queries[0]);
        int buffer = 0;
        HOPFUSE_ROLLED
        for (int depth = 0; depth < part.dim; depth += DEPTH) {
            __syncthreads();
            if (depth + DEPTH < part.dim) read(depth + DEPTH);
            add_products<Width>(shared, buffer, place, sums);
            if (ADDS_PARTS && (depth + DEPTH) % PRODUCT_DEPTH == 0) add_part<Width>(totals, sums);
            buffer = 1 - buffer;
            if (depth + DEPTH < part.dim) {
                rows.write(shared.rows[buffer]);
                queries.write(shared.queries[buffer]);
            }
        }
        if (ADDS_PARTS) add_part<Width>(totals, sums);
        put_all<Width>(part, place, ADDS_PARTS ? totals : sums);
    }

    template <int Width>
    __device__ static void add_products(const Shared& shared, int buffer, const Place<Width>& place,
                                        Sums<Width>& sums) {
#pragma unroll 2  // more take more registers than there are
        for (int column = 0; column < DEPTH; ++column) {
            float x[ROW_GROUPS * GROUP], q[Place<Width>::QUERY_GROUPS * GROUP];
            load<ROW_GROUPS>(shared.rows[buffer][column] + place.row, ROW_LANES * GROUP, x);
            load<Place<Width>::QUERY_GROUPS>(shared.queries[buffer][column] + place.query, QUERY_LANES * GROUP, q);
#pragma unroll
            for (int i = 0; i < Place<Width>::QUERY_GROUPS * GROUP; ++i)
#pragma unroll
                for (int j = 0; j < ROW_GROUPS * GROUP; ++j) sums[i][j] = fmaf(q[i], x[j], sums[i][j]);
        }
    }

    template <int Groups>
    __device__ static void load(const float* from, int step, float (&to)[Groups * GROUP]) {
#pragma unroll
        for (int i = 0; i < Groups; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(from + i * step);
            to[GROUP * i] = four.x, to[GROUP * i + 1] = four.y;
            to[GROUP * i + 2] = four.z, to[GROUP * i + 3] = four.w;
        }
    }

    template <int Width>
    __device__ static void add_part(Sums<Width>& totals, Sums<Width>& sums) {
#pragma unroll
        for (int i = 0; i < Place<Width>::QUERY_GROUPS * GROUP; ++i)
#pragma unroll
            for (int j = 0; j < ROW_GROUPS * GROUP; ++j) {
                totals[i][j] = totals[i][j] + sums[i][j];
                sums[i][j] = 0.0f;
            }
    }

    template <int Width>
    __device__ static void put_all(const Part& part, const Place<Width>& place, const Sums<Width>& sums) {
#pragma unroll
        for (int i = 0; i < Place<Width>::QUERY_GROUPS * GROUP; ++i)
#pragma unroll
            for (int group = 0; group < ROW_GROUPS; ++group) {
                const float* const four = sums[i] + group * GROUP;
                part.put_four(place.query_of(i / GROUP) + i % GROUP, place.row_of(group),
                              make_float4(four[0], four[1], four[2], four[3]));
            }
    }
};

// ---- By the rows' type -----------------------------------------------------------------------------------------------

template <bool HasUnits, class Row>
struct ChosenProduct : MatrixProduct<Row> {};
template <class Row>
struct ChosenProduct<false, Row> : TiledProduct<Row, PRODUCT_QUERIES> {};

template <class Row>
struct ProductOf : ChosenProduct<!Row::IS_BFLOAT || HOPFUSE_CAPABILITY >= 80, Row> {};
template <>
struct ProductOf<Float32Row> : TiledProduct<Float32Row, PRODUCT_QUERIES_F32> {};

}  // namespace hopfuse
