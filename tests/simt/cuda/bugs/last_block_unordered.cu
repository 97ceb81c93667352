// The blocks' sums, and their sum by the last block to come. The bug: blocks are counted, but nothing says that the last one
// may read what the others wrote. out: the sum, the count, the blocks' sums.
#include "hopfuse/device.h"

static __device__ int block_sum(const int* in) {
    int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

static __device__ void add_blocks(int* out) {
    int sum = 0;
    for (unsigned block = 0; block < gridDim.x; ++block) sum += out[2 + block];
    out[0] = sum;
}

extern "C" __global__ void last_block_unordered_bug(const int* in, int* out) {
    const int sum = block_sum(in);
    if (threadIdx.x != 0) return;
    out[2 + blockIdx.x] = sum;
    if (atomicInc(reinterpret_cast<unsigned*>(out + 1), gridDim.x - 1) == gridDim.x - 1) add_blocks(out);
}

extern "C" __global__ void last_block_unordered_fixed(const int* in, int* out) {
    __shared__ bool is_last;
    const int sum = block_sum(in);
    if (threadIdx.x == 0) out[2 + blockIdx.x] = sum;
    if (!hopfuse::is_last_block(reinterpret_cast<unsigned*>(out + 1), gridDim.x, &is_last)) return;
    if (threadIdx.x == 0) add_blocks(out);
}
