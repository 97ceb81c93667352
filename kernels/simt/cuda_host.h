// CUDA C++ for the host compiler: only the language subset of README.md. Every .cu file is compiled with this header in front
// of it. What is missing here does not compile, and build.py refuses by name what would compile but have another meaning on a
// device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime.h"

// ------------------------------------------------------------------------------------------------
// Qualifiers. While build.py lists the kernels, __global__ and __launch_bounds__ are not expanded.

#if !defined(SIMT_LIST_KERNELS)
#define __global__
#define __launch_bounds__(...)
#endif
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
// One section holds all static shared memory, so that the scheduler can poison it for every block.
#define __shared__ static __attribute__((section(".simt_shared")))

// ------------------------------------------------------------------------------------------------
// Built-in variables

using uint3 = ::simt::Index;
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace simt {
inline const Index& thread_index() { return running.thread; }
inline const Index& block_index() { return running.block; }
inline const Index& block_size() { return running.block_size; }
inline const Index& grid_size() { return running.grid_size; }
}  // namespace simt

#define threadIdx (::simt::thread_index())
#define blockIdx (::simt::block_index())
#define blockDim (::simt::block_size())
#define gridDim (::simt::grid_size())
constexpr int warpSize = 32;

// ------------------------------------------------------------------------------------------------
// Vector types, aligned as on the device: a misaligned load is undefined here as there.

#define SIMT_VECTOR2(type, name, align)                      \
    struct __attribute__((aligned(align), may_alias)) name { \
        type x, y;                                           \
    };                                                       \
    inline name make_##name(type x, type y) { return name{x, y}; }
#define SIMT_VECTOR4(type, name, align)                      \
    struct __attribute__((aligned(align), may_alias)) name { \
        type x, y, z, w;                                     \
    };                                                       \
    inline name make_##name(type x, type y, type z, type w) { return name{x, y, z, w}; }

SIMT_VECTOR2(float, float2, 8)
SIMT_VECTOR2(int, int2, 8)
SIMT_VECTOR2(unsigned, uint2, 8)
SIMT_VECTOR2(double, double2, 16)
SIMT_VECTOR2(long long, longlong2, 16)
SIMT_VECTOR2(unsigned long long, ulonglong2, 16)
SIMT_VECTOR2(unsigned short, ushort2, 4)
SIMT_VECTOR4(float, float4, 16)
SIMT_VECTOR4(int, int4, 16)
SIMT_VECTOR4(unsigned, uint4, 16)
SIMT_VECTOR4(unsigned short, ushort4, 8)
SIMT_VECTOR4(signed char, char4, 4)
SIMT_VECTOR4(unsigned char, uchar4, 4)

template <class T>
inline T __ldg(const T* address) {
    return *address;
}

// ------------------------------------------------------------------------------------------------
// Barriers and warp operations. The default arguments give the place of the call.

#define SIMT_SITE int line = __builtin_LINE(), const char *file = __builtin_FILE()

inline void __syncthreads(SIMT_SITE) { ::simt::barrier(::simt::BarrierKind::plain, 0, {file, line}); }
inline int __syncthreads_count(int predicate, SIMT_SITE) {
    return ::simt::barrier(::simt::BarrierKind::count, predicate, {file, line});
}
inline int __syncthreads_and(int predicate, SIMT_SITE) {
    return ::simt::barrier(::simt::BarrierKind::all, predicate, {file, line});
}
inline int __syncthreads_or(int predicate, SIMT_SITE) {
    return ::simt::barrier(::simt::BarrierKind::any, predicate, {file, line});
}

inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
    ::simt::warp_operation(::simt::WarpKind::sync, mask, 0, 0, 0, 32, {file, line});
}

namespace simt {

template <class T>
uint64_t to_word(T value) {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}

template <class T>
T from_word(uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
T shuffle(WarpKind kind, unsigned mask, T value, int lane_argument, int width, Site site) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "shuffles move 4 or 8 bytes");
    return from_word<T>(warp_operation(kind, mask, to_word(value), sizeof(T), lane_argument, width, site));
}

}  // namespace simt

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
    return ::simt::shuffle(::simt::WarpKind::shuffle_index, mask, value, source, width, {file, line});
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    return ::simt::shuffle(::simt::WarpKind::shuffle_up, mask, value, static_cast<int>(delta), width, {file, line});
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    return ::simt::shuffle(::simt::WarpKind::shuffle_down, mask, value, static_cast<int>(delta), width, {file, line});
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_SITE) {
    return ::simt::shuffle(::simt::WarpKind::shuffle_xor, mask, value, lane_mask, width, {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
    return static_cast<unsigned>(
        ::simt::warp_operation(::simt::WarpKind::ballot, mask, predicate != 0, 4, 0, 32, {file, line}));
}
inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
    return static_cast<int>(
        ::simt::warp_operation(::simt::WarpKind::all, mask, predicate != 0, 4, 0, 32, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return static_cast<int>(
        ::simt::warp_operation(::simt::WarpKind::any, mask, predicate != 0, 4, 0, 32, {file, line}));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "matches compare 4 or 8 bytes");
    return static_cast<unsigned>(::simt::warp_operation(::simt::WarpKind::match_any, mask, ::simt::to_word(value),
                                                        sizeof(T), 0, 32, {file, line}));
}

[[noreturn]] inline void __trap(SIMT_SITE) { ::simt::trap({file, line}); }

// ------------------------------------------------------------------------------------------------
// Asynchronous copies, made by compiled code of the kernel, so that the sanitizers see them.

namespace simt {

inline void make(const Copy& copy) {
    *static_cast<uint4*>(copy.to) = copy.is_there ? *static_cast<const uint4*>(copy.from) : uint4{0, 0, 0, 0};
}

inline void copy_sixteen(void* to, const void* from, bool is_there) {
    const Copy copy{to, from, is_there, 0};
    if (begin_copy(copy)) make(copy);
}

inline void await_copies(int groups) {
    while (const Copy* const copy = next_copy(groups)) make(*copy);
}

}  // namespace simt

// ------------------------------------------------------------------------------------------------
// Atomics: relaxed, as on the device, for the types that the device has. uint64_t is `unsigned long` here and
// under nvcc, and no overload takes it: cast to unsigned long long, as there.

namespace simt {

template <class T, class... Allowed>
constexpr bool is_one_of = (std::is_same_v<T, Allowed> || ...);

template <class T, class Change>
inline T atomic(T* address, T operand, Change change) {
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    Word* word = reinterpret_cast<Word*>(address);
    before_atomic();
#if defined(SIMT_COUNT)
    // A load and a store, to be counted; one host thread runs everything.
    const Word before = *word;
    const Word after = static_cast<Word>(to_word(change(from_word<T>(before))));
    *word = after;
#else
    Word before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do {
        after = static_cast<Word>(to_word(change(from_word<T>(before))));
    } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#endif
    after_atomic(address, to_word(operand), before != after);
    return from_word<T>(before);
}

}  // namespace simt

#define SIMT_ATOMIC(name, expression, ...)                                                                    \
    template <class T>                                                                                        \
    inline T name(T* address, std::type_identity_t<T> value) {                                                \
        static_assert(::simt::is_one_of<T, __VA_ARGS__>, #name " of this type does not exist on the device"); \
        return ::simt::atomic(address, value, [=](T old) -> T { return static_cast<T>(expression); });        \
    }

namespace simt {
// Two's complement, as on the device.
template <class T>
T wrapping_add(T a, T b) {
    if constexpr (std::is_same_v<T, int>) return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
    else return a + b;
}
template <class T>
T wrapping_subtract(T a, T b) {
    return static_cast<T>(static_cast<unsigned>(a) - static_cast<unsigned>(b));
}
}  // namespace simt

SIMT_ATOMIC(atomicAdd, ::simt::wrapping_add(old, value), int, unsigned, unsigned long long, float, double)
SIMT_ATOMIC(atomicSub, ::simt::wrapping_subtract(old, value), int, unsigned)
SIMT_ATOMIC(atomicInc, old >= value ? 0 : old + 1, unsigned)
SIMT_ATOMIC(atomicMax, old < value ? value : old, int, unsigned, long long, unsigned long long)
SIMT_ATOMIC(atomicMin, value < old ? value : old, int, unsigned, long long, unsigned long long)
SIMT_ATOMIC(atomicExch, ((void)old, value), int, unsigned, unsigned long long, float)
SIMT_ATOMIC(atomicAnd, old& value, int, unsigned, unsigned long long)
SIMT_ATOMIC(atomicOr, old | value, int, unsigned, unsigned long long)
SIMT_ATOMIC(atomicXor, old ^ value, int, unsigned, unsigned long long)

template <class T>
inline T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
    static_assert(::simt::is_one_of<T, int, unsigned, unsigned long long>,
                  "atomicCAS of this type does not exist on the device");
    return ::simt::atomic(address, value, [=](T old) -> T { return old == compare ? value : old; });
}

// ------------------------------------------------------------------------------------------------
// Bits

inline unsigned __float_as_uint(float value) { return ::simt::from_word<unsigned>(::simt::to_word(value)); }
inline int __float_as_int(float value) { return ::simt::from_word<int>(::simt::to_word(value)); }
inline float __uint_as_float(unsigned value) { return ::simt::from_word<float>(value); }
inline float __int_as_float(int value) { return ::simt::from_word<float>(::simt::to_word(value)); }
inline long long __double_as_longlong(double value) { return ::simt::from_word<long long>(::simt::to_word(value)); }
inline double __longlong_as_double(long long value) { return ::simt::from_word<double>(::simt::to_word(value)); }

inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int __clzll(long long value) {
    return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }
inline unsigned __brev(unsigned value) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= ((value >> i) & 1u) << (31 - i);
    return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
// Four products of bytes, added to the sum.
inline int __dp4a(int a, int b, int sum) {
    unsigned total = static_cast<unsigned>(sum);
    for (int i = 0; i < 32; i += 8)
        total += static_cast<unsigned>(static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i));
    return static_cast<int>(total);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += ((a >> i) & 0xffu) * ((b >> i) & 0xffu);
    return sum;
}

// ------------------------------------------------------------------------------------------------
// Arithmetic: only what is IEEE-rounded or exact on both sides.

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __double2float_rn(double a) { return static_cast<float>(a); }
inline float __int2float_rn(int a) { return static_cast<float>(a); }
inline float __uint2float_rn(unsigned a) { return static_cast<float>(a); }

// Out of range, the device saturates, and NaN becomes 0.
inline int __float2int_rn(float a) {
    if (a != a) return 0;
    if (a >= 2147483648.0f) return 2147483647;
    if (a < -2147483648.0f) return -2147483647 - 1;
    return static_cast<int>(rintf(a));
}

#define SIMT_MIN_MAX(type)                                    \
    inline type min(type a, type b) { return b < a ? b : a; } \
    inline type max(type a, type b) { return a < b ? b : a; }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
// NaN is ignored, as in fminf and fmaxf.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
