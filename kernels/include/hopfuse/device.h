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

// HOPFUSE_CAPABILITY: the compute capability that code is compiled for, 75 for 7.5. The emulator defines it.
#if defined(__CUDA_ARCH__)
#define HOPFUSE_CAPABILITY (__CUDA_ARCH__ / 10)
#elif !defined(HOPFUSE_CAPABILITY)  // nvcc, for the host
#define HOPFUSE_CAPABILITY 90
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

// The same for warps: returns to all threads of a warp whether it is the last of `warps` warps to call this.
HOPFUSE_DEVICE bool is_last_warp(unsigned* arrived, unsigned warps) {
    unsigned before = 0;
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
#if defined(__CUDACC__)
        __threadfence();
        before = atomicInc(arrived, warps - 1);
        __threadfence();
#else
        ::simt::release(arrived);
        before = atomicInc(arrived, warps - 1);
        ::simt::acquire(arrived);
#endif
    }
    __syncwarp();
    return __shfl_sync(0xffffffffu, before, 0) + 1 == warps;
}

// Returns once all blocks of a cooperative launch have called this as often: all threads may then read what any wrote before.
// Called by whole blocks of one dimension. `arrived` counts the blocks; its lower 31 bits are 0 before the launch, and after it.
HOPFUSE_DEVICE void grid_barrier(unsigned* arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
#if defined(__CUDACC__)
        // As in NVIDIA's cooperative groups, whose header NVRTC lacks: the blocks together add 2^31, which flips the top bit
        // once the last of them has come.
        const unsigned own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
        __threadfence();
        const unsigned before = atomicAdd(arrived, own);
        while (((before ^ *static_cast<volatile unsigned*>(arrived)) & 0x80000000u) == 0) {
        }
        __threadfence();
#else
        ::simt::meet_other_blocks(arrived);
#endif
    }
    __syncthreads();
}

// Writes four numbers to global memory, at a multiple of 16 bytes, by one store: compilers split that of a float4.
HOPFUSE_DEVICE void store_four(float* to, const float4& four) {
#if defined(__CUDACC__)
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w)
                 : "memory");
#else
    *reinterpret_cast<float4*>(to) = four;
#endif
}

// Copies 16 bytes from global to shared memory, both at multiples of 16, or writes zeros if they are not there, while the thread
// goes on; with compute capability 7.5, at once. await_copies<N>() returns when all copies of the calling thread are there that
// it began before its last N calls of end_copies(). A barrier is needed for other threads' copies.
HOPFUSE_DEVICE void copy_sixteen(void* to, const void* from, bool is_there) {
#if HOPFUSE_CAPABILITY < 80
    *static_cast<uint4*>(to) = is_there ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#elif defined(__CUDACC__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                   "r"(is_there ? 16 : 0)
                 : "memory");
#else
    ::simt::copy_sixteen(to, from, is_there);
#endif
}

HOPFUSE_DEVICE void end_copies() {
#if HOPFUSE_CAPABILITY >= 80
#if defined(__CUDACC__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    ::simt::end_copies();
#endif
#endif
}

template <int Groups>
HOPFUSE_DEVICE void await_copies() {
#if HOPFUSE_CAPABILITY >= 80
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#else
    ::simt::await_copies(Groups);
#endif
#endif
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

// Rounds to nearest even, and overflows to infinity. Not for NaN.
HOPFUSE_DEVICE unsigned short float_to_bfloat_bits(float value) {
    const unsigned bits = __float_as_uint(value);
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
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

// Adds to `sums` the matrix product of 16 rows and 8 columns of depth 16. Numbers are binary16, or bfloat16 from compute
// capability 8.0 on. Called by all lanes of a warp, each with its part, g = lane / 4 and t = lane % 4:
//   sums[i]     row g + 8 (i / 2), column 2 t + i % 2
//   rows[i]     row g + 8 (i % 2), depths 2 t + 8 (i / 2) and the next, which is in the upper half
//   columns[i]  column g, depths 2 t + 8 i and the next
// Products are exact; dense_topk.h says how well they are added.
template <bool IsBFloat>
HOPFUSE_DEVICE void multiply_add(float (&sums)[4], const unsigned (&rows)[4], const unsigned (&columns)[2]) {
    static_assert(!IsBFloat || HOPFUSE_CAPABILITY >= 80, "compute capability 7.5 multiplies binary16 numbers only");
#if !defined(__CUDACC__)
#if HOPFUSE_CAPABILITY >= 80
    ::simt::mma({sums, rows, columns, 16, IsBFloat}, {__FILE__, __LINE__});
#else
    ::simt::mma({sums, rows, columns, 8, false}, {__FILE__, __LINE__});
    ::simt::mma({sums, rows + 2, columns + 1, 8, false}, {__FILE__, __LINE__});
#endif
#elif HOPFUSE_CAPABILITY >= 80
#define HOPFUSE_MULTIPLY_ADD(type)                                                      \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]))
    if constexpr (IsBFloat) HOPFUSE_MULTIPLY_ADD("bf16");
    else HOPFUSE_MULTIPLY_ADD("f16");
#undef HOPFUSE_MULTIPLY_ADD
#else
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(rows[2 * half]), "r"(rows[2 * half + 1]), "r"(columns[half]));
#endif
}

// Adds to `sums`, which wrap, the matrix product of 16 rows and 8 columns of depth 32 of signed bytes. Called by all lanes of a warp,
// each with its part, g = lane / 4 and t = lane % 4:
//   sums[i]     row g + 8 (i / 2), column 2 t + i % 2
//   rows[i]     row g + 8 (i % 2), depths 4 t + 16 (i / 2) and the next three, the first in the lowest byte
//   columns[i]  column g, depths 4 t + 16 i and the next three
HOPFUSE_DEVICE void multiply_add_bytes(int (&sums)[4], const unsigned (&rows)[4], const unsigned (&columns)[2]) {
#if HOPFUSE_CAPABILITY >= 80
#if !defined(__CUDACC__)
    ::simt::mma({sums, rows, columns, false}, {__FILE__, __LINE__});
#else
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
#endif
#else
#pragma unroll
    for (int part = 0; part < 4; ++part) {  // 8 rows of depth 16 each
#if !defined(__CUDACC__)
        ::simt::mma({sums + part % 2 * 2, rows + part, columns + part / 2, true}, {__FILE__, __LINE__});
#else
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+r"(sums[part % 2 * 2]), "+r"(sums[part % 2 * 2 + 1])
                     : "r"(rows[part]), "r"(columns[part / 2]));
#endif
    }
#endif
}

}  // namespace hopfuse
