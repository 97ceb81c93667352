// The next value of the block, the last one its own. The bug: one beyond the array, seen as an index.

extern "C" __global__ void static_shared_off_by_one_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = kept[threadIdx.x + 1];
}

extern "C" __global__ void static_shared_off_by_one_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = kept[threadIdx.x == 63 ? 63 : threadIdx.x + 1];
}
