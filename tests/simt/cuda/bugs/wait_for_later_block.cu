// The first block waits until the last one has counted itself: nothing says that they run at the same time.

extern "C" __global__ void wait_for_later_block_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&out[gridDim.x * blockDim.x], 1);
    if (blockIdx.x == 0)
        while (atomicAdd(&out[gridDim.x * blockDim.x], 0) < static_cast<int>(gridDim.x)) {
        }
    out[i] = in[i];
}

extern "C" __global__ void wait_for_later_block_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&out[gridDim.x * blockDim.x], 1);
    out[i] = in[i];
}
