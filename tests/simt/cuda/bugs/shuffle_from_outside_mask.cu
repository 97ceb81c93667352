// The sum of the first 16 of each 32 values. The bug: the first step reads lanes that the mask lacks.

extern "C" __global__ void shuffle_from_outside_mask_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 >= 16) return;
    int sum = in[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0x0000ffffu, sum, step);
    if (threadIdx.x % 32 == 0) out[i / 32] = sum;
}

extern "C" __global__ void shuffle_from_outside_mask_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 32 >= 16) return;
    int sum = in[i];
    for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(0x0000ffffu, sum, step, 16);
    if (threadIdx.x % 32 == 0) out[i / 32] = sum;
}
