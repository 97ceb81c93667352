// Odd lanes take the value below, even ones the value above. The bug: a shuffle in each branch, all lanes named.

extern "C" __global__ void mismatched_warp_operation_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 2 == 1) out[i] = __shfl_up_sync(0xffffffffu, in[i], 1);
    else out[i] = __shfl_down_sync(0xffffffffu, in[i], 1);
}

extern "C" __global__ void mismatched_warp_operation_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __shfl_xor_sync(0xffffffffu, in[i], 1);
}
