// Each block reverses its 64 values. The bug: no barrier between writing shared memory and reading it.

extern "C" __global__ void missing_barrier_after_write_bug(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned first = blockIdx.x * 64;
    kept[threadIdx.x] = in[first + threadIdx.x];
    out[first + threadIdx.x] = kept[63 - threadIdx.x];
}

extern "C" __global__ void missing_barrier_after_write_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    const unsigned first = blockIdx.x * 64;
    kept[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = kept[63 - threadIdx.x];
}
