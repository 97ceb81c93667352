// The canonical float32 dot product, and the integer dot of codes. Included once per instruction set.
#pragma once

#include <cstring>

#include "hopfuse/dense_topk.h"
#include "hopfuse/scalar.h"
#include "simd.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// float16 to float32, exact.
HF_INLINE float half_to_float(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude < 0x0400u) {  // zero, subnormal: magnitude * 2^-24
        const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
        return bits_to_float(float_to_bits(value) | sign);
    }
    const uint32_t exponent = magnitude >= 0x7c00u ? 0x7f800000u : (magnitude << 13) + 0x38000000u;
    return bits_to_float(sign | exponent | (magnitude >= 0x7c00u ? (magnitude & 0x3ffu) << 13 : 0u));
}

// bfloat16 to float32, exact: its bits are the upper half of the float's.
HF_INLINE float bfloat_to_float(uint16_t b) { return bits_to_float(uint32_t{b} << 16); }

struct Float32Row {
    using Element = float;
    HF_INLINE float widen(float x) { return x; }
    HF_INLINE F<16> load(const float* p) { return F<16>::load(p); }
};

struct Float16Row {
    using Element = uint16_t;
    HF_INLINE float widen(uint16_t x) { return half_to_float(x); }
    HF_INLINE F<16> load(const uint16_t* p) {
#if defined(HOPFUSE_ISA_AVX512)
        return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
#elif defined(HOPFUSE_ISA_AVX2)
        const __m128i* half = reinterpret_cast<const __m128i*>(p);
        return {{_mm256_cvtph_ps(_mm_loadu_si128(half))}, {_mm256_cvtph_ps(_mm_loadu_si128(half + 1))}};
#else
        float wide[16];
        for (int j = 0; j < 16; ++j) wide[j] = half_to_float(p[j]);
        return F<16>::load(wide);
#endif
    }
};

struct BFloat16Row {
    using Element = uint16_t;
    HF_INLINE float widen(uint16_t x) { return bfloat_to_float(x); }
    HF_INLINE F<16> load(const uint16_t* p) {
#if defined(HOPFUSE_ISA_AVX512)
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
#elif defined(HOPFUSE_ISA_AVX2)
        const __m128i* bits = reinterpret_cast<const __m128i*>(p);
        return {{wide(_mm_loadu_si128(bits))}, {wide(_mm_loadu_si128(bits + 1))}};
#else
        float wide[16];
        for (int j = 0; j < 16; ++j) wide[j] = bfloat_to_float(p[j]);
        return F<16>::load(wide);
#endif
    }

private:
#if defined(HOPFUSE_ISA_AVX2)
    HF_INLINE __m256 wide(__m128i bits) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
#endif
};

HF_INLINE float add_tree(F<16> acc) {
    float a[16];
    F<16>::store(a, acc);
    for (int h = 8; h > 0; h /= 2)
        for (int j = 0; j < h; ++j) a[j] = a[j] + a[j + h];
    return a[0];
}

// Canonical q . x of two rows; their tails are padded with zeros here. `soon` is the row that is read next: rows that
// are far apart start their pages cold.
template <class RowA, class RowB>
float canonical_dot(const typename RowA::Element* q, const typename RowB::Element* x, int32_t dim,
                    const typename RowB::Element* soon) {
    F<16> acc = F<16>::zero();
    int32_t i = 0;
    for (; i + 16 <= dim; i += 16) {
        __builtin_prefetch(soon + i, 0, 2);
        acc = F<16>::fma(RowA::load(q + i), RowB::load(x + i), acc);
    }
    if (i < dim) {
        typename RowA::Element a[16] = {};
        typename RowB::Element b[16] = {};
        for (int32_t j = i; j < dim; ++j) a[j - i] = q[j], b[j - i] = x[j];
        acc = F<16>::fma(RowA::load(a), RowB::load(b), acc);
    }
    return add_tree(acc);
}

// Asks for what lies `bytes` after p, which may be nothing.
HF_INLINE void prefetch_beyond(const void* p, int64_t bytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + uintptr_t(bytes)), 0, 2);
}

// ------------------------------------------------------------------------------------------------
// dots[(t * Q + j) * 16 + r] = sum over the groups of codes[t][group][r][:] . queries[j][group][:], for T
// tiles and Q queries; codes are c + 128, queries signed. Exact in int32.

#if defined(HOPFUSE_ISA_AVX512)

template <int T, int Q>
void code_dots(const uint8_t* codes, int32_t groups, const int8_t* queries, int64_t query_stride, int32_t* dots) {
    const int64_t tile_bytes = int64_t{groups} * DENSE_TILE * DENSE_GROUP;
    __m512i acc[T][Q];
    for (int t = 0; t < T; ++t)
        for (int j = 0; j < Q; ++j) acc[t][j] = _mm512_setzero_si512();
    for (int32_t g = 0; g < groups; ++g) {
        __m512i x[T];
        for (int t = 0; t < T; ++t) x[t] = _mm512_loadu_si512(codes + t * tile_bytes + int64_t{g} * 64);
        for (int t = 0; t < T; ++t) prefetch_beyond(codes, (t + T) * tile_bytes + int64_t{g} * 64);
        for (int j = 0; j < Q; ++j) {
            int32_t four;
            std::memcpy(&four, queries + j * query_stride + int64_t{g} * 4, 4);
            const __m512i q = _mm512_set1_epi32(four);
            for (int t = 0; t < T; ++t) acc[t][j] = _mm512_dpbusd_epi32(acc[t][j], x[t], q);
        }
    }
    for (int t = 0; t < T; ++t)
        for (int j = 0; j < Q; ++j) _mm512_storeu_si512(dots + (t * Q + j) * 16, acc[t][j]);
}

#elif defined(HOPFUSE_ISA_AVX2)

// Without a byte dot product: even and odd bytes as 16-bit pairs, which multiply and add exactly.
template <int T, int Q>
void code_dots(const uint8_t* codes, int32_t groups, const int8_t* queries, int64_t query_stride, int32_t* dots) {
    const int64_t tile_bytes = int64_t{groups} * DENSE_TILE * DENSE_GROUP;
    const __m256i low = _mm256_set1_epi16(0x00ff);
    for (int t = 0; t < T; ++t)
        for (int half = 0; half < 2; ++half) {
            __m256i acc[Q];
            for (int j = 0; j < Q; ++j) acc[j] = _mm256_setzero_si256();
            const uint8_t* base = codes + t * tile_bytes + half * 32;
            for (int32_t g = 0; g < groups; ++g) {
                const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + int64_t{g} * 64));
                const __m256i even = _mm256_and_si256(x, low), odd = _mm256_srli_epi16(x, 8);
                for (int j = 0; j < Q; ++j) {
                    const int8_t* q = queries + j * query_stride + int64_t{g} * 4;
                    const int32_t pair02 = int32_t(uint16_t(int16_t(q[0])) | (uint32_t(uint16_t(int16_t(q[2]))) << 16));
                    const int32_t pair13 = int32_t(uint16_t(int16_t(q[1])) | (uint32_t(uint16_t(int16_t(q[3]))) << 16));
                    const __m256i a = _mm256_madd_epi16(even, _mm256_set1_epi32(pair02));
                    const __m256i b = _mm256_madd_epi16(odd, _mm256_set1_epi32(pair13));
                    acc[j] = _mm256_add_epi32(acc[j], _mm256_add_epi32(a, b));
                }
            }
            for (int j = 0; j < Q; ++j)
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(dots + (t * Q + j) * 16 + half * 8), acc[j]);
        }
}

#elif defined(HOPFUSE_ISA_NEON)

// Signed bytes multiply to 16 bits and add in pairs to 32, exactly; what the + 128 of the codes adds comes at the end.
template <int T, int Q>
void code_dots(const uint8_t* codes, int32_t groups, const int8_t* queries, int64_t query_stride, int32_t* dots) {
    const int64_t tile_bytes = int64_t{groups} * DENSE_TILE * DENSE_GROUP;
    int32_t offset[Q];
    for (int j = 0; j < Q; ++j) {
        int32_t sum = 0;
        for (int64_t i = 0; i < int64_t{groups} * DENSE_GROUP; ++i) sum += queries[j * query_stride + i];
        offset[j] = 128 * sum;
    }
    for (int t = 0; t < T; ++t)
        for (int quarter = 0; quarter < 4; ++quarter) {
            int32x4_t acc[Q][2];  // two sums of two dimensions for each of four rows
            for (int j = 0; j < Q; ++j) acc[j][0] = acc[j][1] = vdupq_n_s32(0);
            const uint8_t* base = codes + t * tile_bytes + quarter * 16;
            for (int32_t g = 0; g < groups; ++g) {
                const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(base + int64_t{g} * 64), vdupq_n_u8(0x80)));
                for (int j = 0; j < Q; ++j) {
                    int32_t four;
                    std::memcpy(&four, queries + j * query_stride + int64_t{g} * 4, 4);
                    const int8x8_t q = vreinterpret_s8_s32(vdup_n_s32(four));
                    acc[j][0] = vpadalq_s16(acc[j][0], vmull_s8(vget_low_s8(x), q));
                    acc[j][1] = vpadalq_s16(acc[j][1], vmull_s8(vget_high_s8(x), q));
                }
            }
            for (int j = 0; j < Q; ++j)
                vst1q_s32(dots + (t * Q + j) * 16 + quarter * 4,
                          vaddq_s32(vpaddq_s32(acc[j][0], acc[j][1]), vdupq_n_s32(offset[j])));
        }
}

#else

template <int T, int Q>
void code_dots(const uint8_t* codes, int32_t groups, const int8_t* queries, int64_t query_stride, int32_t* dots) {
    const int64_t tile_bytes = int64_t{groups} * DENSE_TILE * DENSE_GROUP;
    for (int t = 0; t < T; ++t)
        for (int j = 0; j < Q; ++j) {
            int32_t* out = dots + (t * Q + j) * 16;
            for (int r = 0; r < 16; ++r) out[r] = 0;
            for (int32_t g = 0; g < groups; ++g) {
                const uint8_t* x = codes + t * tile_bytes + int64_t{g} * 64;
                const int8_t* q = queries + j * query_stride + int64_t{g} * 4;
                for (int r = 0; r < 16; ++r)
                    for (int i = 0; i < 4; ++i) out[r] += int32_t{x[r * 4 + i]} * q[i];
            }
        }
}

#endif

}  // namespace hopfuse::HOPFUSE_ISA_NS
