// 64 bins: a block counts in shared memory and adds its counts to the total; and the least and largest value.

extern "C" __global__ void histogram_u8(const unsigned char* __restrict__ x, int n, unsigned* bins, int* least,
                                        int* most) {
    __shared__ unsigned count[64];
    for (int b = static_cast<int>(threadIdx.x); b < 64; b += static_cast<int>(blockDim.x)) count[b] = 0;
    __syncthreads();
    const int stride = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += stride) {
        atomicAdd(&count[x[i] / 4], 1u);
        atomicMin(least, static_cast<int>(x[i]));
        atomicMax(most, static_cast<int>(x[i]));
    }
    __syncthreads();
    for (int b = static_cast<int>(threadIdx.x); b < 64; b += static_cast<int>(blockDim.x))
        atomicAdd(&bins[b], count[b]);
}
