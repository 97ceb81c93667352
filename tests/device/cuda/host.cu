// Small kernels with which the host side of a device is tested.
#include "hopfuse/device.h"

extern "C" __global__ void fill_i32(int* to, int n, int value) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = value;
}

extern "C" __global__ void add_i32(int* to, const int* from, int n, int plus) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = from[i] + plus;
}

extern "C" __global__ void reverse_i32(int* to, const int* from, int n) {
    HOPFUSE_DYNAMIC_SHARED(int, held);
    const int i = static_cast<int>(threadIdx.x);
    for (int j = i; j < n; j += static_cast<int>(blockDim.x)) held[j] = from[j];
    __syncthreads();
    for (int j = i; j < n; j += static_cast<int>(blockDim.x)) to[j] = held[n - 1 - j];
}

// The same with shared memory of its own.
extern "C" __global__ void rotate_i32(int* to, const int* from, int n) {
    HOPFUSE_DYNAMIC_SHARED(int, held);
    __shared__ int first[1024];
    const int i = static_cast<int>(threadIdx.x);
    for (int j = i; j < n; j += static_cast<int>(blockDim.x)) held[j] = from[j];
    if (i < 1024) first[i] = i < n ? from[i] : 0;
    __syncthreads();
    for (int j = i; j < n; j += static_cast<int>(blockDim.x)) to[j] = j + 1 < n ? held[j + 1] : first[0];
}

extern "C" __global__ void fail_i32(int* to, int n) {
    if (threadIdx.x == 0) to[n] = 1;  // `to` is null
}
