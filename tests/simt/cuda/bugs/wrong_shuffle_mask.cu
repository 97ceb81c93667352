// The sum of each warp. The bug: the mask names the lower half, and all lanes call.

extern "C" __global__ void wrong_shuffle_mask_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = in[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, step);
    out[i] = sum;
}

extern "C" __global__ void wrong_shuffle_mask_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = in[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    out[i] = sum;
}
