// The first half of the block takes the sum of both halves. The bug: only that half comes to the barrier.

extern "C" __global__ void divergent_barrier_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    if (threadIdx.x < 32) {
        __syncthreads();
        out[blockIdx.x * 32 + threadIdx.x] = kept[threadIdx.x] + kept[threadIdx.x + 32];
    }
}

extern "C" __global__ void divergent_barrier_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = kept[threadIdx.x] + kept[threadIdx.x + 32];
}
