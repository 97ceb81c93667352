// The largest of 160 values per block. The bug: some threads go round the loop with the barrier once more.

extern "C" __global__ void barrier_in_uneven_loop_bug(const int* in, int* out) {
    __shared__ int most[64];
    const unsigned first = blockIdx.x * 160;
    most[threadIdx.x] = in[first + threadIdx.x];
    for (unsigned j = threadIdx.x; j < 160; j += 64) {
        most[threadIdx.x] = max(most[threadIdx.x], in[first + j]);
        __syncthreads();
    }
    for (unsigned half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) most[threadIdx.x] = max(most[threadIdx.x], most[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = most[0];
}

extern "C" __global__ void barrier_in_uneven_loop_fixed(const int* in, int* out) {
    __shared__ int most[64];
    const unsigned first = blockIdx.x * 160;
    most[threadIdx.x] = in[first + threadIdx.x];
    for (unsigned j = threadIdx.x; j < 160; j += 64) most[threadIdx.x] = max(most[threadIdx.x], in[first + j]);
    __syncthreads();
    for (unsigned half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) most[threadIdx.x] = max(most[threadIdx.x], most[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = most[0];
}
