// The canonical float32 dot product. Included once per instruction set.
#pragma once

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
    HF_INLINE F<16> load(const float* p) {
#if defined(HOPFUSE_ISA_AVX512)
        // Two halves: arrays are rarely aligned to 64 bytes, and a load across two cache lines waits for both.
        return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1)};
#else
        return F<16>::load(p);
#endif
    }
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

// The canonical q . x of two rows, whose tails are padded with zeros. `soon` is the row that is read next, for a prefetch:
// distant rows are not prefetched by hardware.
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

}  // namespace hopfuse::HOPFUSE_ISA_NS
