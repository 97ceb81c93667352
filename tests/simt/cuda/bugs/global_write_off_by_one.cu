// Values shifted by one place. The bug: the last one has no place.

extern "C" __global__ void global_write_off_by_one_bug(const int* in, int* out) {
    const unsigned n = gridDim.x * blockDim.x;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) out[0] = 0;
    if (i < n) out[i + 1] = in[i];
}

extern "C" __global__ void global_write_off_by_one_fixed(const int* in, int* out) {
    const unsigned n = gridDim.x * blockDim.x - 1;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) out[0] = 0;
    if (i < n) out[i + 1] = in[i];
}
