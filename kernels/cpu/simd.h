// Vectors of N float32 or float64 lanes for one instruction set. F<N> and D<N> are composed of the widest registers of the
// set. Every operation is lane-wise and IEEE, so the resulting bits do not depend on the set. Included once per instruction
// set, inside its own namespace.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(HOPFUSE_ISA_AVXVNNI)
#define HOPFUSE_ISA_AVX2  // plus one instruction
#elif defined(HOPFUSE_ISA_AMX)
#define HOPFUSE_ISA_AVX512  // plus the tile registers
#endif
#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVX2)
#include <immintrin.h>
#elif defined(HOPFUSE_ISA_NEON)
#include <arm_neon.h>
#endif

namespace hopfuse::HOPFUSE_ISA_NS {

#define HF_INLINE [[gnu::always_inline]] static inline
#define HF_MEMBER [[gnu::always_inline]] inline
// Goes before a loop over a few vectors, which then stay in registers.
#if defined(__clang__)
#define HF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HF_UNROLL _Pragma("GCC unroll 16")
#endif

// Prefetches the address `bytes` after p, which may be outside the array.
HF_INLINE void prefetch_beyond(const void* p, int64_t bytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + uintptr_t(bytes)), 0, 2);
}

template <int N>
struct F {
    F<N / 2> lo, hi;
    HF_INLINE F zero() { return {F<N / 2>::zero(), F<N / 2>::zero()}; }
    HF_INLINE F all(float s) { return {F<N / 2>::all(s), F<N / 2>::all(s)}; }
    HF_INLINE F load(const float* p) { return {F<N / 2>::load(p), F<N / 2>::load(p + N / 2)}; }
    HF_INLINE void store(float* p, F a) { F<N / 2>::store(p, a.lo), F<N / 2>::store(p + N / 2, a.hi); }
    HF_INLINE F add(F a, F b) { return {F<N / 2>::add(a.lo, b.lo), F<N / 2>::add(a.hi, b.hi)}; }
    HF_INLINE F sub(F a, F b) { return {F<N / 2>::sub(a.lo, b.lo), F<N / 2>::sub(a.hi, b.hi)}; }
    HF_INLINE F mul(F a, F b) { return {F<N / 2>::mul(a.lo, b.lo), F<N / 2>::mul(a.hi, b.hi)}; }
    HF_INLINE F div(F a, F b) { return {F<N / 2>::div(a.lo, b.lo), F<N / 2>::div(a.hi, b.hi)}; }
    HF_INLINE F fma(F a, F b, F c) { return {F<N / 2>::fma(a.lo, b.lo, c.lo), F<N / 2>::fma(a.hi, b.hi, c.hi)}; }
    HF_INLINE F max(F a, F b) { return {F<N / 2>::max(a.lo, b.lo), F<N / 2>::max(a.hi, b.hi)}; }
    HF_INLINE F abs(F a) { return {F<N / 2>::abs(a.lo), F<N / 2>::abs(a.hi)}; }
    // Bit j set where a[j] >= b[j].
    HF_INLINE uint32_t ge(F a, F b) { return F<N / 2>::ge(a.lo, b.lo) | (F<N / 2>::ge(a.hi, b.hi) << (N / 2)); }
};

template <int N>
struct D {
    D<N / 2> lo, hi;
    HF_INLINE D zero() { return {D<N / 2>::zero(), D<N / 2>::zero()}; }
    HF_INLINE D all(double s) { return {D<N / 2>::all(s), D<N / 2>::all(s)}; }
    HF_INLINE D load(const double* p) { return {D<N / 2>::load(p), D<N / 2>::load(p + N / 2)}; }
    HF_INLINE D widen(const float* p) { return {D<N / 2>::widen(p), D<N / 2>::widen(p + N / 2)}; }
    HF_INLINE void store(double* p, D a) { D<N / 2>::store(p, a.lo), D<N / 2>::store(p + N / 2, a.hi); }
    HF_INLINE void narrow(float* p, D a) { D<N / 2>::narrow(p, a.lo), D<N / 2>::narrow(p + N / 2, a.hi); }  // rounded
    HF_INLINE D add(D a, D b) { return {D<N / 2>::add(a.lo, b.lo), D<N / 2>::add(a.hi, b.hi)}; }
    HF_INLINE D sub(D a, D b) { return {D<N / 2>::sub(a.lo, b.lo), D<N / 2>::sub(a.hi, b.hi)}; }
    HF_INLINE D mul(D a, D b) { return {D<N / 2>::mul(a.lo, b.lo), D<N / 2>::mul(a.hi, b.hi)}; }
    HF_INLINE D div(D a, D b) { return {D<N / 2>::div(a.lo, b.lo), D<N / 2>::div(a.hi, b.hi)}; }
    HF_INLINE D fma(D a, D b, D c) { return {D<N / 2>::fma(a.lo, b.lo, c.lo), D<N / 2>::fma(a.hi, b.hi, c.hi)}; }
    HF_INLINE D max(D a, D b) { return {D<N / 2>::max(a.lo, b.lo), D<N / 2>::max(a.hi, b.hi)}; }
    HF_INLINE D abs(D a) { return {D<N / 2>::abs(a.lo), D<N / 2>::abs(a.hi)}; }
    // table[at[j]], of numbers that may be narrower.
    template <class Number, class Index>
    HF_INLINE D gather(const Number* table, const Index* at) {
        return {D<N / 2>::gather(table, at), D<N / 2>::gather(table, at + N / 2)};
    }
};

// One lane. The only type without an instruction set; fma then is that of the C library.
template <>
struct F<1> {
    float v;
    HF_INLINE F zero() { return {0.0f}; }
    HF_INLINE F all(float s) { return {s}; }
    HF_INLINE F load(const float* p) { return {*p}; }
    HF_INLINE void store(float* p, F a) { *p = a.v; }
    HF_INLINE F add(F a, F b) { return {a.v + b.v}; }
    HF_INLINE F sub(F a, F b) { return {a.v - b.v}; }
    HF_INLINE F mul(F a, F b) { return {a.v * b.v}; }
    HF_INLINE F div(F a, F b) { return {a.v / b.v}; }
    HF_INLINE F fma(F a, F b, F c) { return {__builtin_fmaf(a.v, b.v, c.v)}; }
    HF_INLINE F max(F a, F b) { return {a.v > b.v ? a.v : b.v}; }
    HF_INLINE F abs(F a) { return {__builtin_fabsf(a.v)}; }
    HF_INLINE uint32_t ge(F a, F b) { return a.v >= b.v ? 1u : 0u; }
};

template <>
struct D<1> {
    double v;
    HF_INLINE D zero() { return {0.0}; }
    HF_INLINE D all(double s) { return {s}; }
    HF_INLINE D load(const double* p) { return {*p}; }
    HF_INLINE D widen(const float* p) { return {static_cast<double>(*p)}; }
    HF_INLINE void store(double* p, D a) { *p = a.v; }
    HF_INLINE void narrow(float* p, D a) { *p = static_cast<float>(a.v); }
    HF_INLINE D add(D a, D b) { return {a.v + b.v}; }
    HF_INLINE D sub(D a, D b) { return {a.v - b.v}; }
    HF_INLINE D mul(D a, D b) { return {a.v * b.v}; }
    HF_INLINE D div(D a, D b) { return {a.v / b.v}; }
    HF_INLINE D fma(D a, D b, D c) { return {__builtin_fma(a.v, b.v, c.v)}; }
    HF_INLINE D max(D a, D b) { return {a.v > b.v ? a.v : b.v}; }
    HF_INLINE D abs(D a) { return {__builtin_fabs(a.v)}; }
    template <class Number, class Index>
    HF_INLINE D gather(const Number* table, const Index* at) {
        return {static_cast<double>(table[*at])};
    }
};

#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVX2)

template <>
struct F<4> {
    __m128 v;
    HF_INLINE F zero() { return {_mm_setzero_ps()}; }
    HF_INLINE F all(float s) { return {_mm_set1_ps(s)}; }
    HF_INLINE F load(const float* p) { return {_mm_loadu_ps(p)}; }
    HF_INLINE void store(float* p, F a) { _mm_storeu_ps(p, a.v); }
    HF_INLINE F add(F a, F b) { return {_mm_add_ps(a.v, b.v)}; }
    HF_INLINE F sub(F a, F b) { return {_mm_sub_ps(a.v, b.v)}; }
    HF_INLINE F mul(F a, F b) { return {_mm_mul_ps(a.v, b.v)}; }
    HF_INLINE F div(F a, F b) { return {_mm_div_ps(a.v, b.v)}; }
    HF_INLINE F fma(F a, F b, F c) { return {_mm_fmadd_ps(a.v, b.v, c.v)}; }
    HF_INLINE F max(F a, F b) { return {_mm_max_ps(a.v, b.v)}; }
    HF_INLINE F abs(F a) { return {_mm_andnot_ps(_mm_set1_ps(-0.0f), a.v)}; }
    HF_INLINE uint32_t ge(F a, F b) { return static_cast<uint32_t>(_mm_movemask_ps(_mm_cmpge_ps(a.v, b.v))); }
};

template <>
struct F<8> {
    __m256 v;
    HF_INLINE F zero() { return {_mm256_setzero_ps()}; }
    HF_INLINE F all(float s) { return {_mm256_set1_ps(s)}; }
    HF_INLINE F load(const float* p) { return {_mm256_loadu_ps(p)}; }
    HF_INLINE void store(float* p, F a) { _mm256_storeu_ps(p, a.v); }
    HF_INLINE F add(F a, F b) { return {_mm256_add_ps(a.v, b.v)}; }
    HF_INLINE F sub(F a, F b) { return {_mm256_sub_ps(a.v, b.v)}; }
    HF_INLINE F mul(F a, F b) { return {_mm256_mul_ps(a.v, b.v)}; }
    HF_INLINE F div(F a, F b) { return {_mm256_div_ps(a.v, b.v)}; }
    HF_INLINE F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
    HF_INLINE F max(F a, F b) { return {_mm256_max_ps(a.v, b.v)}; }
    HF_INLINE F abs(F a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
    HF_INLINE uint32_t ge(F a, F b) {
        return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)));
    }
};

template <>
struct D<4> {
    __m256d v;
    HF_INLINE D zero() { return {_mm256_setzero_pd()}; }
    HF_INLINE D all(double s) { return {_mm256_set1_pd(s)}; }
    HF_INLINE D load(const double* p) { return {_mm256_loadu_pd(p)}; }
    HF_INLINE D widen(const float* p) { return {_mm256_cvtps_pd(_mm_loadu_ps(p))}; }
    HF_INLINE void store(double* p, D a) { _mm256_storeu_pd(p, a.v); }
    HF_INLINE void narrow(float* p, D a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a.v)); }
    HF_INLINE D add(D a, D b) { return {_mm256_add_pd(a.v, b.v)}; }
    HF_INLINE D sub(D a, D b) { return {_mm256_sub_pd(a.v, b.v)}; }
    HF_INLINE D mul(D a, D b) { return {_mm256_mul_pd(a.v, b.v)}; }
    HF_INLINE D div(D a, D b) { return {_mm256_div_pd(a.v, b.v)}; }
    HF_INLINE D fma(D a, D b, D c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
    HF_INLINE D max(D a, D b) { return {_mm256_max_pd(a.v, b.v)}; }
    HF_INLINE D abs(D a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)}; }
    template <class Index>
    HF_INLINE D gather(const double* table, const Index* at) {
        return {_mm256_setr_pd(table[at[0]], table[at[1]], table[at[2]], table[at[3]])};
    }
    template <class Index>
    HF_INLINE D gather(const float* table, const Index* at) {
        return {_mm256_cvtps_pd(_mm_setr_ps(table[at[0]], table[at[1]], table[at[2]], table[at[3]]))};
    }
};

#elif defined(HOPFUSE_ISA_NEON)

template <>
struct F<4> {
    float32x4_t v;
    HF_INLINE F zero() { return {vdupq_n_f32(0.0f)}; }
    HF_INLINE F all(float s) { return {vdupq_n_f32(s)}; }
    HF_INLINE F load(const float* p) { return {vld1q_f32(p)}; }
    HF_INLINE void store(float* p, F a) { vst1q_f32(p, a.v); }
    HF_INLINE F add(F a, F b) { return {vaddq_f32(a.v, b.v)}; }
    HF_INLINE F sub(F a, F b) { return {vsubq_f32(a.v, b.v)}; }
    HF_INLINE F mul(F a, F b) { return {vmulq_f32(a.v, b.v)}; }
    HF_INLINE F div(F a, F b) { return {vdivq_f32(a.v, b.v)}; }
    HF_INLINE F fma(F a, F b, F c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
    HF_INLINE F max(F a, F b) { return {vmaxq_f32(a.v, b.v)}; }
    HF_INLINE F abs(F a) { return {vabsq_f32(a.v)}; }
    HF_INLINE uint32_t ge(F a, F b) {
        const uint32x4_t bit = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(vcgeq_f32(a.v, b.v), bit));
    }
};

template <>
struct D<2> {
    float64x2_t v;
    HF_INLINE D zero() { return {vdupq_n_f64(0.0)}; }
    HF_INLINE D all(double s) { return {vdupq_n_f64(s)}; }
    HF_INLINE D load(const double* p) { return {vld1q_f64(p)}; }
    HF_INLINE D widen(const float* p) { return {vcvt_f64_f32(vld1_f32(p))}; }
    HF_INLINE void store(double* p, D a) { vst1q_f64(p, a.v); }
    HF_INLINE void narrow(float* p, D a) { vst1_f32(p, vcvt_f32_f64(a.v)); }
    HF_INLINE D add(D a, D b) { return {vaddq_f64(a.v, b.v)}; }
    HF_INLINE D sub(D a, D b) { return {vsubq_f64(a.v, b.v)}; }
    HF_INLINE D mul(D a, D b) { return {vmulq_f64(a.v, b.v)}; }
    HF_INLINE D div(D a, D b) { return {vdivq_f64(a.v, b.v)}; }
    HF_INLINE D fma(D a, D b, D c) { return {vfmaq_f64(c.v, a.v, b.v)}; }
    HF_INLINE D max(D a, D b) { return {vmaxq_f64(a.v, b.v)}; }
    HF_INLINE D abs(D a) { return {vabsq_f64(a.v)}; }
    template <class Number, class Index>
    HF_INLINE D gather(const Number* table, const Index* at) {
        return {float64x2_t{static_cast<double>(table[at[0]]), static_cast<double>(table[at[1]])}};
    }
};

#endif

#if defined(HOPFUSE_ISA_AVX512)

template <>
struct F<16> {
    __m512 v;
    HF_INLINE F zero() { return {_mm512_setzero_ps()}; }
    HF_INLINE F all(float s) { return {_mm512_set1_ps(s)}; }
    HF_INLINE F load(const float* p) { return {_mm512_loadu_ps(p)}; }
    HF_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
    HF_INLINE F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
    HF_INLINE F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
    HF_INLINE F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
    HF_INLINE F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
    HF_INLINE F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    HF_INLINE F max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
    HF_INLINE F abs(F a) { return {_mm512_abs_ps(a.v)}; }
    HF_INLINE uint32_t ge(F a, F b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ); }
};

template <>
struct D<8> {
    __m512d v;
    HF_INLINE D zero() { return {_mm512_setzero_pd()}; }
    HF_INLINE D all(double s) { return {_mm512_set1_pd(s)}; }
    HF_INLINE D load(const double* p) { return {_mm512_loadu_pd(p)}; }
    HF_INLINE D widen(const float* p) { return {_mm512_cvtps_pd(_mm256_loadu_ps(p))}; }
    HF_INLINE void store(double* p, D a) { _mm512_storeu_pd(p, a.v); }
    HF_INLINE void narrow(float* p, D a) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(a.v)); }
    HF_INLINE D add(D a, D b) { return {_mm512_add_pd(a.v, b.v)}; }
    HF_INLINE D sub(D a, D b) { return {_mm512_sub_pd(a.v, b.v)}; }
    HF_INLINE D mul(D a, D b) { return {_mm512_mul_pd(a.v, b.v)}; }
    HF_INLINE D div(D a, D b) { return {_mm512_div_pd(a.v, b.v)}; }
    HF_INLINE D fma(D a, D b, D c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
    HF_INLINE D max(D a, D b) { return {_mm512_max_pd(a.v, b.v)}; }
    HF_INLINE D abs(D a) { return {_mm512_abs_pd(a.v)}; }
    template <class Number, class Index>
    HF_INLINE D gather(const Number* table, const Index* at) {
        const D<4> low = D<4>::gather(table, at), high = D<4>::gather(table, at + 4);
        return {_mm512_insertf64x4(_mm512_castpd256_pd512(low.v), high.v, 1)};
    }
};

#endif

// Sixteen rows of 16 floats: columns[j][i] = rows[i][j].
HF_INLINE void transpose_16(const float* const rows[16], float* const columns[16]) {
#if defined(HOPFUSE_ISA_AVX512)
    __m512 a[16], b[16];
    HF_UNROLL for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(rows[i]);
    HF_UNROLL for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    HF_UNROLL for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    HF_UNROLL for (int i = 0; i < 4; ++i) {
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
    }
    HF_UNROLL for (int i = 0; i < 4; ++i) {
        _mm512_storeu_ps(columns[i], _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88));
        _mm512_storeu_ps(columns[i + 8], _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd));
        _mm512_storeu_ps(columns[i + 4], _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88));
        _mm512_storeu_ps(columns[i + 12], _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd));
    }
#else
    for (int j = 0; j < 16; ++j)
        for (int i = 0; i < 16; ++i) columns[j][i] = rows[i][j];
#endif
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
