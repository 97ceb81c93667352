// Matrix products of rows and float32 queries, which find candidates: sums that differ from the exact ones by less than a bound.
// By matrix units, with the bounds of hopfuse/dense_topk.h; where no unit multiplies the rows' type, and where units multiply the
// parts of float32 rows in no less time, by float32 arithmetic: topk.cu derives the bound of float32 sums in any order.
#pragma once

#include "arguments/dense_topk.h"
#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// The part of a product that is this block's. Positions in it fit 32 bits: 128 rows of at most 2^20 numbers.
template <class Row>
struct ProductPart {
    const typename Row::Element* rows;  // (num_rows, dim)
    const float* row_norms;             // (num_rows,)
    const float* queries;               // (num_queries, dim)
    const uint4* parts;                 // of queries: arguments/dense_topk.h
    const float* norms;                 // (num_queries,)
    int num_rows, num_queries, dim;
    float* out;
    int64_t stride;  // between queries in out

    __device__ ProductPart(const ProductRows<typename Row::Element>& given, const QueryVectors& q,
                           const unsigned short* all_parts, float* all_out) {
        const int64_t query_blocks = (q.batch + PRODUCT_QUERIES - 1) / PRODUCT_QUERIES;
        const int64_t first_query = blockIdx.x % query_blocks * PRODUCT_QUERIES;
        const int64_t first_row = blockIdx.x / query_blocks * PRODUCT_ROWS, left = given.count - first_row;
        rows = given.rows + first_row * q.dim;
        row_norms = given.norms + first_row;
        queries = q.data + first_query * q.dim;
        parts = reinterpret_cast<const uint4*>(all_parts + first_query * query_parts_size(q.dim));
        norms = q.norm + first_query;
        num_rows = static_cast<int>(left < PRODUCT_ROWS ? left : PRODUCT_ROWS);
        num_queries =
            static_cast<int>(q.batch - first_query < PRODUCT_QUERIES ? q.batch - first_query : PRODUCT_QUERIES);
        dim = q.dim;
        out = all_out + first_query * given.count + first_row;
        stride = given.count;
    }

    // Only queries first .. first + count - 1 of the block, as far as there are any.
    __device__ ProductPart some(int first, int count) const {
        ProductPart found = *this;
        found.queries += first * dim;
        found.num_queries = num_queries - first < count ? num_queries - first : count;
        found.out += first * stride;
        return found;
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
// Numbers times a power of two are sums of a high and a low 16-bit part. A warp multiplies 32 rows and all queries of the block:
// the rows' numbers with the queries' parts, or where rows are float32 numbers the parts of both, but for low parts with each
// other. Thread 4 g + t has eight adjacent dimensions, from 8 t on, of rows g + 8 j and queries g + 8 j: the order of dimensions
// in a sum is free. Numbers are copied to shared memory some steps of 32 dimensions ahead: a thread's rows to places of its own,
// the queries' parts for all.

// 2^(14 - e) for 2^e <= size < 2^(e + 1).
HOPFUSE_DEVICE float part_scale(float size) {
    return bits_to_float((268u - ((float_to_bits(size) >> 23) & 255u)) << 23);
}

// 1 / scale, exactly.
HOPFUSE_DEVICE float inverse_scale(float scale) { return bits_to_float((254u << 23) - float_to_bits(scale)); }

// The parts of two numbers, each of `first` in the lower half.
template <class Parts>
HOPFUSE_DEVICE void split_pair(float first, float second, unsigned& low, unsigned& high) {
    const unsigned short top[2] = {Parts::narrow(first), Parts::narrow(second)};
    high = top[0] | static_cast<unsigned>(top[1]) << 16;
    low = Parts::narrow(first - Parts::widen(top[0])) |
          static_cast<unsigned>(Parts::narrow(second - Parts::widen(top[1]))) << 16;
}

// Eight numbers of a row, as they are multiplied with parts of queries: 16-bit rows as they are.
template <class Row>
struct UnitLine {
    static constexpr int COPIES = 1, PARTS = 1;
    static __device__ void take(const uint4 (&raw)[COPIES], float, uint4 (&parts)[PARTS]) { parts[0] = raw[0]; }
};
template <>
struct UnitLine<Float32Row> {
    static constexpr int COPIES = 2, PARTS = 2;  // high, low
    static __device__ void take(const uint4 (&raw)[COPIES], float scale, uint4 (&parts)[PARTS]) {
        const auto split = [&](unsigned first, unsigned second, unsigned& high, unsigned& low) {
            split_pair<Float16Row>(bits_to_float(first) * scale, bits_to_float(second) * scale, low, high);
        };
        split(raw[0].x, raw[0].y, parts[0].x, parts[1].x);
        split(raw[0].z, raw[0].w, parts[0].y, parts[1].y);
        split(raw[1].x, raw[1].y, parts[0].z, parts[1].z);
        split(raw[1].z, raw[1].w, parts[0].w, parts[1].w);
    }
};

// The scales of four rows in one register: the exponents of powers of two.
struct PackedScales {
    unsigned exponents = 0;

    __device__ void put(int j, float scale) { exponents |= float_to_bits(scale) >> 23 << (8 * j); }
    __device__ float of(int j) const { return bits_to_float((exponents >> (8 * j) & 255u) << 23); }
};

template <class Row>
struct MatrixProduct {
    using Part = ProductPart<Row>;
    using Line = UnitLine<Row>;
    using Element = typename Row::Element;
    static constexpr bool IS_BFLOAT = Row::IS_BFLOAT, IS_WIDE = Line::PARTS == 2;
    static constexpr int WARP = 32, WARP_ROWS = PRODUCT_ROWS / (PRODUCT_THREADS / WARP), LINES = WARP_ROWS / 8;
    static constexpr int ROW_TILES = WARP_ROWS / 16, QUERY_TILES = PRODUCT_QUERIES / 8, CHUNKS = PRODUCT_DEPTH / 8;
    static constexpr int PER_COPY = 16 / sizeof(Element);
    static constexpr bool IS_ASYNCHRONOUS = HOPFUSE_CAPABILITY >= 80;
    static constexpr int STAGES = IS_ASYNCHRONOUS && !IS_WIDE ? 3 : 2;
    static constexpr int ROW_COPIES = LINES * Line::COPIES;
    static constexpr int PART_COPIES = PRODUCT_QUERIES * 2 * CHUNKS / PRODUCT_THREADS;

    static_assert(LINES == 4, "as many as PackedScales has");

    struct Stage {
        uint4 rows[ROW_COPIES][PRODUCT_THREADS];
        uint4 parts[2][PRODUCT_QUERIES][CHUNKS];  // low, high
    };
    struct Shared {
        Stage stages[STAGES];
    };

    __device__ static void multiply(const Part& part, float norm_floor, Shared& shared) {
        const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, group = lane / 4, member = lane % 4;
        const int first_row = thread / WARP * WARP_ROWS + group;
        const int steps = (part.dim + PRODUCT_DEPTH - 1) / PRODUCT_DEPTH;
        float sums[ROW_TILES][QUERY_TILES][4] = {};
        PackedScales scales;
        if constexpr (IS_WIDE) {
#pragma unroll
            for (int j = 0; j < LINES; ++j)
                scales.put(j, part_scale(part.row_norms[row_at(part, first_row + 8 * j)] + norm_floor));
        }
        Ahead ahead{part, first_row, 8 * member};
#pragma unroll
        for (int stage = 0; stage + 1 < STAGES; ++stage) {
            ahead.read(stage, steps, shared.stages[stage]);
            ahead.write(shared.stages[stage]);
        }
        int now = 0, next = STAGES - 1;
        HOPFUSE_ROLLED
        for (int step = 0; step < steps; ++step) {
            await_copies<STAGES - 2>();
            __syncthreads();
            ahead.read(step + STAGES - 1, steps, shared.stages[next]);
            multiply_stage(shared.stages[now], part.num_queries, scales, sums);
            ahead.write(shared.stages[next]);
            now = now + 1 < STAGES ? now + 1 : 0;
            next = next + 1 < STAGES ? next + 1 : 0;
        }
#pragma unroll
        for (int column = 0; column < 2 * QUERY_TILES; ++column) {
            const int query = 8 * (column / 2) + 2 * member + column % 2;
            if (query >= part.num_queries) continue;
            const float scale = inverse_scale(part_scale(part.norms[query] + norm_floor));
#pragma unroll
            for (int j = 0; j < LINES; ++j) {
                const float product = sums[j / 2][column / 2][2 * (j % 2) + column % 2] * scale;
                part.put(query, first_row + 8 * j, IS_WIDE ? product * inverse_scale(scales.of(j)) : product);
            }
        }
    }

private:
    // A row beyond the end is the last one again.
    __device__ static int row_at(const Part& part, int row) { return row < part.num_rows ? row : part.num_rows - 1; }

    // Copies of a step's numbers. Without asynchronous copies, they are in registers until those in use have been read.
    struct Ahead {
        const Part& part;
        int first_row, first;
        uint4 held_rows[IS_ASYNCHRONOUS ? 1 : ROW_COPIES], held_parts[IS_ASYNCHRONOUS ? 1 : PART_COPIES];

        __device__ Ahead(const Part& of, int row, int at) : part(of), first_row(row), first(at) {}

        __device__ void read(int step, int steps, Stage& to) {
            const bool is_aligned = part.dim % PER_COPY == 0;
#pragma unroll
            for (int copy = 0; copy < ROW_COPIES; ++copy) {
                const int at = step * PRODUCT_DEPTH + first + copy % Line::COPIES * PER_COPY;
                const Element* const row = part.rows + row_at(part, first_row + copy / Line::COPIES * 8) * part.dim;
                uint4& place = to.rows[copy][threadIdx.x];
                if constexpr (IS_ASYNCHRONOUS) {
                    if (is_aligned) copy_sixteen(&place, at < part.dim ? row + at : row, at < part.dim);
                    else place = read_apart(row, at);
                } else {
                    held_rows[copy] = !is_aligned     ? read_apart(row, at)
                                      : at < part.dim ? *reinterpret_cast<const uint4*>(row + at)
                                                      : make_uint4(0, 0, 0, 0);
                }
            }
#pragma unroll
            for (int copy = 0; copy < PART_COPIES; ++copy) {
                if (!is_multiplied(copy)) continue;
                const int number = number_of(copy), query = number / (2 * CHUNKS);
                const bool is_there = step < steps && query < part.num_queries;
                const int64_t at = (int64_t{query} * steps + step) * (2 * CHUNKS) + number % (2 * CHUNKS);
                const uint4* const from = part.parts + (is_there ? at : 0);
                if constexpr (IS_ASYNCHRONOUS) copy_sixteen(&part_in(to, number), from, is_there);
                else held_parts[copy] = is_there ? *from : make_uint4(0, 0, 0, 0);
            }
            end_copies();
        }

        __device__ void write(Stage& to) {
            if constexpr (!IS_ASYNCHRONOUS) {
#pragma unroll
                for (int copy = 0; copy < ROW_COPIES; ++copy) to.rows[copy][threadIdx.x] = held_rows[copy];
#pragma unroll
                for (int copy = 0; copy < PART_COPIES; ++copy)
                    if (is_multiplied(copy)) part_in(to, number_of(copy)) = held_parts[copy];
            }
        }

    private:
        // Whether a copy is of the half of the block's queries that are multiplied in any case, or of both. Of float32 rows all are
        // made: their conditions take more registers than there are.
        __device__ bool is_multiplied(int copy) const {
            return IS_WIDE || copy < PART_COPIES / 2 || part.num_queries > PRODUCT_QUERIES / 2;
        }

        __device__ static int number_of(int copy) { return static_cast<int>(threadIdx.x) + copy * PRODUCT_THREADS; }

        // In global memory, a query's low and high parts of a step follow each other.
        __device__ static uint4& part_in(Stage& stage, int number) {
            return stage.parts[number / CHUNKS % 2][number / (2 * CHUNKS)][number % CHUNKS];
        }

        // As many numbers as 16 bytes hold, one by one, 0 beyond the end.
        __device__ uint4 read_apart(const Element* row, int at) const {
            unsigned words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int first_number = at + i * PER_COPY / 4;
                words[i] = first_number < part.dim ? bits_of(row[first_number]) : 0;
                if (PER_COPY == 8 && first_number + 1 < part.dim) words[i] |= bits_of(row[first_number + 1]) << 16;
            }
            return make_uint4(words[0], words[1], words[2], words[3]);
        }
        __device__ static unsigned bits_of(float value) { return float_to_bits(value); }
        __device__ static unsigned bits_of(unsigned short bits) { return bits; }
    };

    __device__ static void multiply_stage(const Stage& stage, int num_queries, const PackedScales& scales,
                                          float (&sums)[ROW_TILES][QUERY_TILES][4]) {
        uint4 lines[Line::PARTS][LINES];
#pragma unroll
        for (int j = 0; j < LINES; ++j) {
            uint4 raw[Line::COPIES], parts[Line::PARTS];
#pragma unroll
            for (int i = 0; i < Line::COPIES; ++i) raw[i] = stage.rows[j * Line::COPIES + i][threadIdx.x];
            Line::take(raw, scales.of(j), parts);
#pragma unroll
            for (int i = 0; i < Line::PARTS; ++i) lines[i][j] = parts[i];
        }
        multiply_half<0>(stage, lines, sums);
        if (num_queries > PRODUCT_QUERIES / 2) multiply_half<1>(stage, lines, sums);
    }

    // Half of the block's queries; those beyond the end are zeros.
    template <int Half>
    __device__ static void multiply_half(const Stage& stage, const uint4 (&lines)[Line::PARTS][LINES],
                                         float (&sums)[ROW_TILES][QUERY_TILES][4]) {
        constexpr int TILES = QUERY_TILES / 2;
        const int lane = static_cast<int>(threadIdx.x) % WARP, group = lane / 4, member = lane % 4;
#pragma unroll
        for (int tile = Half * TILES; tile < (Half + 1) * TILES; ++tile) {
            const uint4 low = stage.parts[0][8 * tile + group][member], high = stage.parts[1][8 * tile + group][member];
#pragma unroll
            for (int m = 0; m < ROW_TILES; ++m) add_products(lines, m, low, high, sums[m][tile]);
        }
    }

    // Sums of 32 dimensions start at 0, with the low parts, so that they lose little; then they are added to the rest.
    __device__ static void add_products(const uint4 (&lines)[Line::PARTS][LINES], int m, const uint4& low,
                                        const uint4& high, float (&total)[4]) {
        float sum[4] = {};
        add_half(sum, lines[0], m, low);
        if constexpr (IS_WIDE) add_half(sum, lines[1], m, high);
        add_half(sum, lines[0], m, high);
#pragma unroll
        for (int i = 0; i < 4; ++i) total[i] = total[i] + sum[i];
    }

    __device__ static void add_half(float (&sum)[4], const uint4 (&lines)[LINES], int m, const uint4& columns) {
        const uint4 &top = lines[2 * m], &bottom = lines[2 * m + 1];
        multiply_add<IS_BFLOAT>(sum, {top.x, bottom.x, top.y, bottom.y}, {columns.x, columns.y});
        multiply_add<IS_BFLOAT>(sum, {top.z, bottom.z, top.w, bottom.w}, {columns.z, columns.w});
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

template <class Row>
struct TiledProduct {
    using Part = ProductPart<Row>;
    static constexpr int DEPTH = 8, WARP = 32, WARP_ROWS = 64, GROUP = 4;
    static constexpr int ROW_LANES = 8, QUERY_LANES = 4, ROW_GROUPS = WARP_ROWS / (ROW_LANES * GROUP);
    static constexpr int QUERY_WARPS = PRODUCT_THREADS / WARP / (PRODUCT_ROWS / WARP_ROWS);
    // Whether the sums of PRODUCT_DEPTH dimensions begin at 0, as those of matrix units, and are then added to the rest.
    static constexpr bool ADDS_PARTS = sizeof(typename Row::Element) == 2;
    // Queries multiplied at once, or half as many where there are no more: with the sums of parts, registers for half as many.
    static constexpr int FEW = PRODUCT_QUERIES / 2, QUERIES = ADDS_PARTS ? FEW : PRODUCT_QUERIES;

    // Four numbers more than a line has, so that threads write to different banks.
    struct alignas(16) Shared {
        float rows[2][DEPTH][PRODUCT_ROWS + 4];
        float queries[2][DEPTH][QUERIES + 4];
    };

    __device__ static void multiply(const Part& part, float, Shared& shared) {
        if constexpr (!ADDS_PARTS) {
            if (part.num_queries > FEW) return multiply_some<QUERIES>(part, shared);
            return multiply_some<FEW>(part, shared);
        } else {
            multiply_some<FEW>(part.some(0, FEW), shared);
            if (part.num_queries <= FEW) return;
            __syncthreads();
            multiply_some<FEW>(part.some(FEW, FEW), shared);
        }
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

// Float32 rows take three products of parts. That is less time than float32 arithmetic takes where units multiply more than three
// times as many numbers: on compute capability 8.0, 9.0 and 10.0 (A100 16, H100 15, B200 28 times), not on cards for graphics (8.6,
// 8.9 and 12.0: 2 times) or on 7.5, which has no asynchronous copies for their 32 bytes a thread.
template <class Row>
constexpr bool HAS_UNITS = !Row::IS_BFLOAT || HOPFUSE_CAPABILITY >= 80;
template <>
constexpr bool HAS_UNITS<Float32Row> =
    HOPFUSE_CAPABILITY >= 80 && HOPFUSE_CAPABILITY <= 100 && HOPFUSE_CAPABILITY % 10 == 0;

template <bool HasUnits, class Row>
struct ChosenProduct : MatrixProduct<Row> {};
template <class Row>
struct ChosenProduct<false, Row> : TiledProduct<Row> {};

template <class Row>
struct ProductOf : ChosenProduct<HAS_UNITS<Row>, Row> {};

}  // namespace hopfuse
