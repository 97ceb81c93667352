// The largest value of each block and 0. The bug: places without a value are never written.
#include "hopfuse/device.h"

extern "C" __global__ void uninitialised_dynamic_shared_bug(const int* in, int* out) {
    HOPFUSE_DYNAMIC_SHARED(unsigned, kept);
    if (threadIdx.x < 48) kept[threadIdx.x] = static_cast<unsigned>(in[blockIdx.x * 48 + threadIdx.x]);
    __syncthreads();
    for (unsigned half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) kept[threadIdx.x] = max(kept[threadIdx.x], kept[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(kept[0]);
}

extern "C" __global__ void uninitialised_dynamic_shared_fixed(const int* in, int* out) {
    HOPFUSE_DYNAMIC_SHARED(unsigned, kept);
    kept[threadIdx.x] = threadIdx.x < 48 ? static_cast<unsigned>(in[blockIdx.x * 48 + threadIdx.x]) : 0u;
    __syncthreads();
    for (unsigned half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) kept[threadIdx.x] = max(kept[threadIdx.x], kept[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(kept[0]);
}
