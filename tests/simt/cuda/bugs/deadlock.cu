// Half a warp at a block's barrier, the other half at the warp's.

extern "C" __global__ void deadlock_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 < 16) __syncthreads();
    else __syncwarp();
    out[i] = in[i];
}

extern "C" __global__ void deadlock_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    __syncthreads();
    __syncwarp();
    out[i] = in[i];
}
