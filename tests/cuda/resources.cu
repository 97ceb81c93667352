// Kernels that use each kind of resource that a cubin reports: test_cuda_readers.py.
#include "hopfuse/device.h"

extern "C" __global__ void few_registers(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void __launch_bounds__(64, 2) bounded(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void static_shared(int* out) {
    __shared__ int most[12 * 1024];
    for (int i = static_cast<int>(threadIdx.x); i < 12 * 1024; i += static_cast<int>(blockDim.x)) most[i] = i;
    __syncthreads();
    out[threadIdx.x] = most[12 * 1024 - 1 - threadIdx.x];
}

extern "C" __global__ void dynamic_shared(int* out) {
    HOPFUSE_DYNAMIC_SHARED(int, word);
    __shared__ int few[3];
    word[threadIdx.x] = few[threadIdx.x % 3] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = word[blockDim.x - 1 - threadIdx.x] + few[0];
}

static __device__ __noinline__ int local_array(const int* in) {
    int value[64];
    for (int i = 0; i < 64; ++i) value[i] = in[i];
    return value[in[64]];
}
extern "C" __global__ void calls(int* out) {
    out[0] = local_array(out);
    out[1] = local_array(out + 1);
}

extern "C" __global__ void __maxnreg__(24) spills(int* out) {
    int value[128];
    for (int i = 0; i < 128; ++i) value[i] = out[i * 32 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 128; ++i) out[i * 32 + threadIdx.x] = value[i] * value[127 - i];
}
