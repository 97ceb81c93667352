// The sum of each value and the next. The bug: the last one has no next.

extern "C" __global__ void global_read_off_by_one_bug(const int* in, int* out) {
    const unsigned n = gridDim.x * blockDim.x;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i < n ? in[i] + in[i + 1] : 0;
}

extern "C" __global__ void global_read_off_by_one_fixed(const int* in, int* out) {
    const unsigned n = gridDim.x * blockDim.x;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i + 1 < n ? in[i] + in[i + 1] : in[i];
}
