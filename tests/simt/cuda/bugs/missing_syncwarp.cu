// Neighbours swap through shared memory. The bug: nothing orders the lanes of a warp.

extern "C" __global__ void missing_syncwarp_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    out[i] = kept[threadIdx.x ^ 1];
}

extern "C" __global__ void missing_syncwarp_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    kept[threadIdx.x] = in[i];
    __syncwarp();
    out[i] = kept[threadIdx.x ^ 1];
}
