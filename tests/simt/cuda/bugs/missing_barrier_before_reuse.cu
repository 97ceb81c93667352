// Each block reverses two runs of 64 values. The bug: the second run overwrites the first while it is read.

extern "C" __global__ void missing_barrier_before_reuse_bug(const int* in, int* out) {
    __shared__ int kept[64];
    for (unsigned run = 0; run < 2; ++run) {
        const unsigned first = (blockIdx.x * 2 + run) * 64;
        kept[threadIdx.x] = in[first + threadIdx.x];
        __syncthreads();
        out[first + threadIdx.x] = kept[63 - threadIdx.x];
    }
}

extern "C" __global__ void missing_barrier_before_reuse_fixed(const int* in, int* out) {
    __shared__ int kept[64];
    for (unsigned run = 0; run < 2; ++run) {
        const unsigned first = (blockIdx.x * 2 + run) * 64;
        kept[threadIdx.x] = in[first + threadIdx.x];
        __syncthreads();
        out[first + threadIdx.x] = kept[63 - threadIdx.x];
        __syncthreads();
    }
}
