// The sum of the first 24 of each 32 values. The bug: lanes without a value leave, and are named in the mask.

extern "C" __global__ void exited_lane_in_mask_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x % 32;
    if (lane >= 24) return;
    int sum = in[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) out[i / 32] = sum;
}

extern "C" __global__ void exited_lane_in_mask_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x % 32;
    int sum = lane < 24 ? in[i] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) out[i / 32] = sum;
}
