// As missing_syncwarp. The bug: a shuffle, which makes lanes meet but orders no memory.

extern "C" __global__ void shuffle_as_barrier_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    const int none = __shfl_sync(0xffffffffu, 0, 0);
    out[i] = kept[threadIdx.x ^ 1] + none;
}

extern "C" __global__ void shuffle_as_barrier_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncwarp();
    out[i] = kept[threadIdx.x ^ 1];
}
