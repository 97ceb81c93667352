// Rows of a corpus and their canonical scores (hopfuse/dense_topk.h) on a device, for dense search and for similarity.
//
// 16 threads compute a canonical dot product: thread j is accumulator j, and shuffles form the tree. Rows are float32, or the
// bits of float16 and bfloat16.
#pragma once

#include "arguments/dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

struct Float32Row {
    using Element = float;
    static constexpr bool IS_BFLOAT = false;
    __device__ static float widen(float value) { return value; }
    __device__ static float4 widen_four(const float* four) { return *reinterpret_cast<const float4*>(four); }
};

struct Float16Row {
    using Element = unsigned short;
    static constexpr bool IS_BFLOAT = false;
    __device__ static float widen(unsigned short bits) { return half_bits_to_float(bits); }
    __device__ static unsigned short narrow(float value) { return float_to_half_bits(value); }
};

struct BFloat16Row {
    using Element = unsigned short;
    static constexpr bool IS_BFLOAT = true;
    __device__ static float widen(unsigned short bits) { return bfloat_bits_to_float(bits); }
    __device__ static float4 widen_four(const unsigned short* four) {
        const uint2 bits = *reinterpret_cast<const uint2*>(four);
        return make_float4(bits_to_float(bits.x << 16), bits_to_float(bits.x & 0xffff0000u),
                           bits_to_float(bits.y << 16), bits_to_float(bits.y & 0xffff0000u));
    }
    __device__ static unsigned short narrow(float value) { return float_to_bfloat_bits(value); }
};

// Numbers of a row that a thread reads before it adds the first, so that the loads overlap.
constexpr int NUMBERS_AHEAD = 8;

// Adds the products of numbers first, first + 16 and so on, all within the row.
template <class Row, int Q, int Ahead>
HOPFUSE_DEVICE void add_products(const float* const (&query)[Q], const typename Row::Element* row, int64_t first,
                                 float (&sum)[Q]) {
    float x[Ahead], own[Q][Ahead];
#pragma unroll
    for (int n = 0; n < Ahead; ++n) {
        x[n] = Row::widen(row[first + n * LANES]);
#pragma unroll
        for (int t = 0; t < Q; ++t) own[t][n] = query[t][first + n * LANES];
    }
#pragma unroll
    for (int n = 0; n < Ahead; ++n) {
#pragma unroll
        for (int t = 0; t < Q; ++t) sum[t] = fmaf(own[t][n], x[n], sum[t]);
    }
}

// Accumulator `lane` of Q dot products with one row. Lanes beyond the end multiply zeros, like the padding of the contract,
// which turns an accumulator of -0 into +0.
template <class Row, int Q>
HOPFUSE_DEVICE void accumulate(const float* const (&query)[Q], const typename Row::Element* row, int dim, int lane,
                               float (&sum)[Q]) {
    constexpr int ahead = Q == 1 ? NUMBERS_AHEAD : NUMBERS_AHEAD / 2;
    for (int t = 0; t < Q; ++t) sum[t] = 0.0f;
    int64_t i = lane;
    HOPFUSE_ROLLED
    for (; i - lane + ahead * LANES <= dim; i += ahead * LANES) add_products<Row, Q, ahead>(query, row, i, sum);
    HOPFUSE_ROLLED
    for (; i - lane < dim; i += LANES) {
        const bool is_inside = i < dim;
        const float x = is_inside ? Row::widen(row[i]) : 0.0f;
#pragma unroll
        for (int t = 0; t < Q; ++t) sum[t] = fmaf(is_inside ? query[t][i] : 0.0f, x, sum[t]);
    }
}

// The total of 16 lanes, in lane 0. Called by all lanes of the warp.
HOPFUSE_DEVICE float add_tree(float sum) {
    for (int h = LANES / 2; h > 0; h /= 2) sum = sum + __shfl_down_sync(0xffffffffu, sum, h, LANES);
    return sum;
}

HOPFUSE_DEVICE float score_of(float dot, int cosine, float query_norm, float row_norm) {
    return cosine != 0 ? dot / (query_norm * row_norm) : dot;
}

// A query's part of a mask, or null.
HOPFUSE_DEVICE const uint8_t* mask_of(const RowMask& mask, int64_t query) {
    return mask.bytes == nullptr ? nullptr : mask.bytes + query * mask.stride + mask.first;
}

HOPFUSE_DEVICE bool is_allowed(const RowMask& mask, int64_t query, int64_t row) {
    return mask.bytes == nullptr || mask.bytes[query * mask.stride + mask.first + row] != 0;
}

}  // namespace hopfuse
