// Replacements for constructs of CUDA C++ that nvcc, NVRTC and the SIMT emulator do not share. It includes nothing,
// because NVRTC has no standard headers.
#pragma once

// HOPFUSE_DYNAMIC_SHARED(type, name);  inside a kernel: `type* name` is the block's dynamic shared memory, of the size
// given at launch, aligned to 16 bytes. A kernel that needs several arrays divides it itself.
#if defined(__CUDACC__)
#define HOPFUSE_DYNAMIC_SHARED(type, name)                                  \
    extern __shared__ __align__(16) unsigned char hopfuse_dynamic_shared[]; \
    type* const name = reinterpret_cast<type*>(hopfuse_dynamic_shared)
#else
#define HOPFUSE_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::simt::dynamic_shared())
#endif

#if defined(__CUDACC__)
#define HOPFUSE_DEVICE static __device__ __forceinline__
#else
#define HOPFUSE_DEVICE [[maybe_unused]] static inline
#endif

namespace hopfuse {

// Returns to all threads of a block whether it is the last of `blocks` blocks to call this. `arrived` counts them; it is 0
// before the first call and after the last. The last block may read what the others wrote before. `is_last` is shared memory.
HOPFUSE_DEVICE bool is_last_block(unsigned* arrived, unsigned blocks, bool* is_last) {
    __syncthreads();
    if (threadIdx.x == 0) {
#if defined(__CUDACC__)
        __threadfence();
        const unsigned before = atomicInc(arrived, blocks - 1);
        __threadfence();
#else
        ::simt::release(arrived);
        const unsigned before = atomicInc(arrived, blocks - 1);
        ::simt::acquire(arrived);
#endif
        *is_last = before + 1 == blocks;
    }
    __syncthreads();
    return *is_last;
}

// binary16 numbers as their 16 bits. Widening is exact; narrowing rounds to nearest even and overflows to infinity.
HOPFUSE_DEVICE float half_bits_to_float(unsigned short bits) {
#if defined(__CUDACC__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const unsigned sign = static_cast<unsigned>(bits & 0x8000u) << 16;
    const unsigned exponent = (bits >> 10) & 0x1fu;
    const unsigned fraction = bits & 0x3ffu;
    if (exponent == 31) {
        if (fraction != 0) return __uint_as_float(0x7fffffffu);  // the device's NaN
        return __uint_as_float(sign | 0x7f800000u);
    }
    if (exponent == 0) {  // fraction * 2^-24, exactly
        const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return __uint_as_float(sign | __float_as_uint(magnitude));
    }
    return __uint_as_float(sign | ((exponent + 112u) << 23) | (fraction << 13));
#endif
}

// bfloat16 numbers as their 16 bits, the upper half of the float; widening is exact.
HOPFUSE_DEVICE float bfloat_bits_to_float(unsigned short bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

HOPFUSE_DEVICE unsigned short float_to_half_bits(float value) {
#if defined(__CUDACC__)
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const unsigned all = __float_as_uint(value);
    const unsigned sign = (all >> 16) & 0x8000u;
    const unsigned magnitude = all & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<unsigned short>(0x7fffu);          // the device's NaN
    if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);  // 65520 and above
    if (magnitude < 0x38800000u) {
        // Below 2^-14: adding 2^-1 rounds the sum to a multiple of 2^-24, the smallest binary16 number, to nearest even.
        const float sum = __uint_as_float(magnitude) + 0.5f;
        return static_cast<unsigned short>(sign | (__float_as_uint(sum) - 0x3f000000u));
    }
    const unsigned odd = (magnitude >> 13) & 1u;
    return static_cast<unsigned short>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

}  // namespace hopfuse
