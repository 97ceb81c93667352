// As static_shared_off_by_one, in dynamic shared memory.
#include "hopfuse/device.h"

extern "C" __global__ void dynamic_shared_off_by_one_bug(const int* in, int* out) {
    HOPFUSE_DYNAMIC_SHARED(int, kept);
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = kept[threadIdx.x + 1];
}

extern "C" __global__ void dynamic_shared_off_by_one_fixed(const int* in, int* out) {
    HOPFUSE_DYNAMIC_SHARED(int, kept);
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = kept[threadIdx.x == 63 ? 63 : threadIdx.x + 1];
}
