// The sum of each block. The bug: the sum does not start at 0.

extern "C" __global__ void uninitialised_static_shared_bug(const int* in, int* out) {
    __shared__ int sum;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" __global__ void uninitialised_static_shared_fixed(const int* in, int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
