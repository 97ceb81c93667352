// Even blocks fill one array, odd ones the other. The bug: one beyond it, through a pointer, into its neighbour.

extern "C" __global__ void static_shared_write_beyond_bug(const int* in, int* out) {
    __shared__ int even[64];
    __shared__ int odd[80];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    int* const kept = blockIdx.x % 2 == 0 ? even : odd;
    for (unsigned j = threadIdx.x; j <= 64; j += 64) kept[j] = in[i];
    __syncthreads();
    out[i] = kept[63 - threadIdx.x];
}

extern "C" __global__ void static_shared_write_beyond_fixed(const int* in, int* out) {
    __shared__ int even[64];
    __shared__ int odd[80];
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    int* const kept = blockIdx.x % 2 == 0 ? even : odd;
    for (unsigned j = threadIdx.x; j < 64; j += 64) kept[j] = in[i];
    __syncthreads();
    out[i] = kept[63 - threadIdx.x];
}
