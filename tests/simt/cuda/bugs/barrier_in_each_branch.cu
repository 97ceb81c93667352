// Each half of the block writes the other half's values. The bug: a barrier in each branch.

extern "C" __global__ void barrier_in_each_branch_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    if (threadIdx.x < 32) {
        __syncthreads();
        out[i] = kept[threadIdx.x + 32];
    } else {
        __syncthreads();
        out[i] = kept[threadIdx.x - 32];
    }
}

extern "C" __global__ void barrier_in_each_branch_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = kept[threadIdx.x ^ 32];
}
