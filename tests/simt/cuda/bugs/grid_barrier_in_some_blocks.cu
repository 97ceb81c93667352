// Each block adds the first value of every block to its own. The bug: a block whose first value is odd skips the grid barrier.
// out: the values, and the counter of the barriers, which is called twice.
#include "hopfuse/device.h"

static __device__ void add_firsts(int* out, unsigned at) {
    int sum = 0;
    for (unsigned block = 0; block < gridDim.x; ++block) sum += out[block * blockDim.x];
    hopfuse::grid_barrier(reinterpret_cast<unsigned*>(out + gridDim.x * blockDim.x));
    out[at] += sum;
}

extern "C" __global__ void grid_barrier_in_some_blocks_bug(const int* in, int* out) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at];
    if (in[blockIdx.x * blockDim.x] % 2 != 0) return;
    hopfuse::grid_barrier(reinterpret_cast<unsigned*>(out + gridDim.x * blockDim.x));
    add_firsts(out, at);
}

extern "C" __global__ void grid_barrier_in_some_blocks_fixed(const int* in, int* out) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at];
    hopfuse::grid_barrier(reinterpret_cast<unsigned*>(out + gridDim.x * blockDim.x));
    add_firsts(out, at);
}
