// The arithmetic that host and device share: IEEE operations in a stated order, so that every
// variant of every kernel gives the same bits. Built with -ffp-contract=off / --fmad=false; a fused
// multiply-add happens only where fma() is written.
//
// This header is compiled once per instruction set, and the linker merges inline functions of the same name,
// possibly into one that needs AVX-512. So functions here have internal linkage, and classes are in an inline
// namespace per instruction set.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cmath>
#endif

#include "hopfuse/integers.h"

// HOPFUSE_FN: a function shared by host and device; HOPFUSE_MEMBER: a member function of a shared struct.
#if defined(__CUDACC__)
#define HOPFUSE_FN static __host__ __device__ inline
#define HOPFUSE_MEMBER __host__ __device__
#else
#define HOPFUSE_FN [[maybe_unused]] static inline
#define HOPFUSE_MEMBER
#endif

// HOPFUSE_ROLLED: do not unroll the following loop on a device; it is short, and unrolling would cost registers.
#if defined(__CUDACC__)
#define HOPFUSE_ROLLED _Pragma("unroll 1")
#else
#define HOPFUSE_ROLLED
#endif

#if defined(HOPFUSE_ISA_NS)
#define HOPFUSE_JOIN_(a, b) a##b
#define HOPFUSE_JOIN(a, b) HOPFUSE_JOIN_(a, b)
#define HOPFUSE_SHARED HOPFUSE_JOIN(shared_, HOPFUSE_ISA_NS)
#else
#define HOPFUSE_SHARED shared
#endif

namespace hopfuse {

HOPFUSE_FN float bits_to_float(uint32_t bits) {
    union {
        uint32_t u;
        float f;
    } both = {bits};
    return both.f;
}

HOPFUSE_FN uint32_t float_to_bits(float value) {
    union {
        float f;
        uint32_t u;
    } both = {value};
    return both.u;
}

// ------------------------------------------------------------------------------------------------
// Total order: higher score first, then lower id.

HOPFUSE_FN bool ranks_before(float score_a, int64_t id_a, float score_b, int64_t id_b) {
    return score_a > score_b || (score_a == score_b && id_a < id_b);
}

// ------------------------------------------------------------------------------------------------
// exp and log in float32, within 2 ulp. exp: x = n ln 2 + r with ln 2 split in two (n * high part is
// exact), the Taylor polynomial of degree 7 on |r| <= ln(2)/2, then 2^n as two factors so that
// subnormal results are rounded once. log: x = 2^e m with m in [sqrt(1/2), sqrt(2)),
// ln m = 2 artanh((m - 1) / (m + 1)).

HOPFUSE_FN float hf_exp(float x) {
    if (x != x) return x;
    if (x > 88.7228394f) return bits_to_float(0x7f800000u);
    if (x < -103.972084f) return 0.0f;
    const float n = floorf(fmaf(x, 1.44269502f, 0.5f));
    float r = fmaf(-n, 0.693359375f, x);
    r = fmaf(-n, -2.12194440e-4f, r);
    float p = 1.0f / 5040.0f;
    p = fmaf(p, r, 1.0f / 720.0f);
    p = fmaf(p, r, 1.0f / 120.0f);
    p = fmaf(p, r, 1.0f / 24.0f);
    p = fmaf(p, r, 1.0f / 6.0f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    const int32_t whole = static_cast<int32_t>(n);
    const int32_t half = whole / 2;
    const float first = bits_to_float(static_cast<uint32_t>(half + 127) << 23);
    const float second = bits_to_float(static_cast<uint32_t>(whole - half + 127) << 23);
    return (p * first) * second;
}

HOPFUSE_FN float hf_log(float x) {
    if (x != x || x < 0.0f) return bits_to_float(0x7fc00000u);
    if (x == 0.0f) return bits_to_float(0xff800000u);
    if (float_to_bits(x) == 0x7f800000u) return x;
    float shift = 0.0f;
    if (x < 1.17549435e-38f) {  // subnormal: scale by 2^24
        x = x * 16777216.0f;
        shift = -24.0f;
    }
    const uint32_t bits = float_to_bits(x) - 0x3f3504f3u;  // sqrt(1/2)
    const int32_t exponent = static_cast<int32_t>(bits) >> 23;
    const float m = bits_to_float((bits & 0x007fffffu) + 0x3f3504f3u);
    const float e = static_cast<float>(exponent) + shift;
    const float f = m - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    float p = 2.0f / 13.0f;
    p = fmaf(p, z, 2.0f / 11.0f);
    p = fmaf(p, z, 2.0f / 9.0f);
    p = fmaf(p, z, 2.0f / 7.0f);
    p = fmaf(p, z, 2.0f / 5.0f);
    p = fmaf(p, z, 2.0f / 3.0f);
    // ln(1 + f) = 2 s + s z p, and 2 s = f - s f in exact arithmetic, so f is kept unrounded.
    const float tail = fmaf(s, fmaf(p, z, -f), fmaf(e, -2.12194440e-4f, 0.0f));
    return fmaf(e, 0.693359375f, f + tail);
}

// tanh in float32, within 3 ulp: below 5/8 the fifth convergent of Lambert's continued fraction x/(1 + x^2/(3 + x^2/(5 +
// ...))), whose relative error is below 1e-9 there; above, 1 - 2/(exp(2 |x|) + 1).
HOPFUSE_FN float hf_tanh(float x) {
    const float size = fabsf(x);
    if (size < 0.625f) {
        const float z = x * x;
        return x * fmaf(z, 105.0f + z, 945.0f) / fmaf(z, fmaf(z, 15.0f, 420.0f), 945.0f);
    }
    const float t = 1.0f - 2.0f / (hf_exp(2.0f * size) + 1.0f);
    return x < 0.0f ? -t : t;
}

// ------------------------------------------------------------------------------------------------
// The fixed blocked tree: value i of a block of 1024 is added to accumulator i mod 32, which starts at +0;
// then the 32 accumulators are added pairwise (j and j + 16, 8, 4, 2, 1). The totals of blocks are the values
// of the next level, which is summed by the same rule. Zeros appended at the end change nothing.

inline namespace HOPFUSE_SHARED {

template <class T>
class TreeSum {
public:
    HOPFUSE_MEMBER void push(T value) { push_at(0, value); }

    // Returns the sum of the pushed values and empties the object. A single value passes through the
    // higher levels unchanged (a sum that starts at +0 is never -0).
    HOPFUSE_MEMBER T result() {
        for (int level = 0; level + 1 < levels; ++level)
            if (count_[level] > 0) push_at(level + 1, reduce(level));
        return reduce(levels - 1);
    }

private:
    static constexpr int levels = 5;
    T acc_[levels][32] = {};
    int count_[levels] = {};

    HOPFUSE_MEMBER void push_at(int level, T value) {
        T& slot = acc_[level][count_[level] & 31];
        slot = slot + value;
        if (++count_[level] == 1024 && level + 1 < levels) push_at(level + 1, reduce(level));
    }

    HOPFUSE_MEMBER T reduce(int level) {
        T* a = acc_[level];
        for (int h = 16; h > 0; h /= 2)
            for (int j = 0; j < h; ++j) a[j] = a[j] + a[j + h];
        const T total = a[0];
        for (int j = 0; j < 32; ++j) a[j] = T(0);
        count_[level] = 0;
        return total;
    }
};

// ------------------------------------------------------------------------------------------------
// A team processes the values of a list together. All its members execute the same function in step:
//   each(n, f)   calls f(i) for i = 0 .. n - 1, always with the same member for an i; what f writes to out[i] may be
//                read at i, but only there, by a later each or sum without a barrier
//   sum(n, f)    returns the blocked tree's sum of f(i), float or double, to all members; f(i) is called as by each
//   least(mine)  returns the minimum of the members' values
//   alone(f)     calls f() on one member, which may read everything written before; all may read what it writes
// So one source serves both, and a device's warp computes the same bits as the host's single thread.

struct Alone {
    template <class F>
    HOPFUSE_MEMBER void each(int64_t n, F f) const {
        for (int64_t i = 0; i < n; ++i) f(i);
    }

    template <class F>
    HOPFUSE_MEMBER auto sum(int64_t n, F f) const -> decltype(f(n)) {
        if (n <= 1024) return block(0, n, f);
        TreeSum<decltype(f(n))> totals;
        for (int64_t first = 0; first < n; first += 1024)
            totals.push(block(first, n - first < 1024 ? n : first + 1024, f));
        return totals.result();
    }

    HOPFUSE_MEMBER float least(float mine) const { return mine; }

    template <class F>
    HOPFUSE_MEMBER void alone(F f) const {
        f();
    }

private:
    // One block of the tree, at most 1024 values.
    template <class F>
    HOPFUSE_MEMBER auto block(int64_t i, int64_t end, const F& f) const -> decltype(f(i)) {
        decltype(f(i)) acc[32] = {};
        for (; end - i >= 32; i += 32)
            for (int j = 0; j < 32; ++j) acc[j] = acc[j] + f(i + j);
        for (int j = 0; i < end; ++i, ++j) acc[j] = acc[j] + f(i);
        for (int h = 16; h > 0; h /= 2)
            for (int j = 0; j < h; ++j) acc[j] = acc[j] + acc[j + h];
        return acc[0];
    }
};

}  // namespace HOPFUSE_SHARED

}  // namespace hopfuse
