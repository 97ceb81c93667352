// The sum of all values. The bug: it is rounded in the order in which threads come.

extern "C" __global__ void float_atomic_order_bug(const float* in, float* out) {
    atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

extern "C" __global__ void float_atomic_order_fixed(const float* in, float* out) {
    const unsigned n = gridDim.x * blockDim.x;
    float sum = 0.0f;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (unsigned i = 0; i < n; ++i) sum += in[i];
        out[0] = sum;
    }
}
