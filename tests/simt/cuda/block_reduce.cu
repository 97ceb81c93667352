// The sum of each block's 256 values: shuffles in a warp, static shared memory between warps.

extern "C" __global__ void __launch_bounds__(256) block_reduce_f32(const float* __restrict__ x, float* sums) {
    __shared__ float of_warp[8];
    float value = x[blockIdx.x * 256 + threadIdx.x];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 8) {
        float total = of_warp[threadIdx.x];
        for (int step = 4; step > 0; step /= 2) total += __shfl_down_sync(0xffu, total, step, 8);
        if (threadIdx.x == 0) sums[blockIdx.x] = total;
    }
}
