// One kernel for each family of built-in functions, a thread a case.
#include "hopfuse/device.h"
#include "hopfuse/scalar.h"

#define SLOT const unsigned i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void bits_u32(const unsigned* in, int* popc, int* clz, int* ffs, unsigned* brev, unsigned* high) {
    SLOT;
    popc[i] = __popc(in[i]) + __popcll(static_cast<unsigned long long>(in[i]) << 20);
    clz[i] = __clz(static_cast<int>(in[i])) + 100 * __clzll(static_cast<long long>(in[i]));
    ffs[i] = __ffs(static_cast<int>(in[i])) + 100 * __ffsll(static_cast<long long>(in[i]) << 9);
    brev[i] = __brev(in[i]);
    high[i] = __umulhi(in[i], in[i]);
}

extern "C" __global__ void dot_bytes(const int* a, const int* b, int* as_signed, unsigned* as_unsigned) {
    SLOT;
    as_signed[i] = __dp4a(a[i], b[i], -5);
    as_unsigned[i] = __dp4a(static_cast<unsigned>(a[i]), static_cast<unsigned>(b[i]), 5u);
}

extern "C" __global__ void arithmetic_f32(const float* a, const float* b, const float* c, float* fused, float* quotient,
                                          float* root, float* least, int* nearest) {
    SLOT;
    fused[i] = __fmaf_rn(a[i], b[i], c[i]);
    quotient[i] = __fdiv_rn(a[i], b[i]);
    root[i] = __fsqrt_rn(fabsf(a[i]));
    least[i] = min(a[i], max(b[i], c[i]));
    nearest[i] = __float2int_rn(a[i]);
}

extern "C" __global__ void halves(const unsigned short* half, float* wide, const float* in, unsigned short* narrow) {
    SLOT;
    wide[i] = hopfuse::half_bits_to_float(half[i]);
    narrow[i] = hopfuse::float_to_half_bits(in[i]);
}

extern "C" __global__ void exp_log(const float* in, float* exps, float* logs) {
    SLOT;
    exps[i] = hopfuse::hf_exp(in[i]);
    logs[i] = hopfuse::hf_log(in[i]);
}

// Every shuffle, one warp, segments of `width`; value lane + 100 for each lane.
extern "C" __global__ void shuffles(int width, int argument, int* index, double* up, long long* down, float* crossed) {
    const int lane = static_cast<int>(threadIdx.x);
    const unsigned all = 0xffffffffu, delta = static_cast<unsigned>(argument);
    index[lane] = __shfl_sync(all, lane + 100, argument, width);
    up[lane] = __shfl_up_sync(all, static_cast<double>(lane + 100), delta, width);
    down[lane] = __shfl_down_sync(all, static_cast<long long>(lane + 100), delta, width);
    crossed[lane] = __shfl_xor_sync(all, static_cast<float>(lane + 100), argument, width);
}

// Votes of the lanes of `mask`; the others stay out.
extern "C" __global__ void votes(unsigned mask, const int* in, unsigned* ballot, int* all, int* any, unsigned* same) {
    const unsigned lane = threadIdx.x;
    if (((mask >> lane) & 1u) == 0) return;
    ballot[lane] = __ballot_sync(mask, in[lane] > 2);
    all[lane] = __all_sync(mask, in[lane] > 2);
    any[lane] = __any_sync(mask, in[lane] > 2);
    same[lane] = __match_any_sync(mask, in[lane]);
}

extern "C" __global__ void block_votes(const int* in, int* count, int* all, int* any) {
    SLOT;
    count[i] = __syncthreads_count(in[i] > 2);
    all[i] = __syncthreads_and(in[i] > 2);
    any[i] = __syncthreads_or(in[i] > 2);
}

extern "C" __global__ void atomics(const int* in, int* sums, unsigned* words, unsigned long long* wide, double* total,
                                   float* swapped) {
    SLOT;
    atomicAdd(&sums[0], in[i]);
    atomicSub(&sums[1], in[i]);
    atomicMax(&sums[2], in[i]);
    atomicMin(&sums[3], in[i]);
    atomicAnd(&words[0], ~(1u << (i % 32)));
    atomicOr(&words[1], 1u << (i % 32));
    atomicXor(&words[2], static_cast<unsigned>(in[i]));
    atomicAdd(&wide[0], 1ull << 33);
    atomicMax(&wide[1], static_cast<unsigned long long>(in[i]) << 32);
    atomicAdd(total, static_cast<double>(in[i]));
    atomicExch(swapped, 7.0f);
    for (unsigned seen = atomicCAS(&words[3], 0u, 0u), expected;; seen = expected) {  // a product, by compare and swap
        expected = atomicCAS(&words[3], seen, seen * 3u);
        if (expected == seen) break;
    }
}

// The place of a thread in a grid of three dimensions, and struct arguments.
struct Offsets {
    int scale;
    double shift;
};

extern "C" __global__ void places(int* out, Offsets offsets, bool negate, const int* nothing) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    const int value =
        static_cast<int>(i) * offsets.scale + static_cast<int>(offsets.shift) + (nothing == nullptr ? 0 : 1);
    out[i] = negate ? -value : value;
}
