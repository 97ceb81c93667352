// The first value of each pair. The bug: both threads of a pair write.

extern "C" __global__ void two_writers_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i / 2] = in[i];
}

extern "C" __global__ void two_writers_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 2 == 0) out[i / 2] = in[i];
}
