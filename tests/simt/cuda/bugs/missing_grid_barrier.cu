// Each block takes the values of the next one, through the array where its own were. The bug: no grid barrier between writing
// and reading. out: the values, and the counter of the barriers.
#include "hopfuse/device.h"

extern "C" __global__ void missing_grid_barrier_bug(const int* in, int* out) {
    unsigned* const arrived = reinterpret_cast<unsigned*>(out + gridDim.x * blockDim.x);
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at];
    const int next = out[(at + blockDim.x) % (gridDim.x * blockDim.x)];
    hopfuse::grid_barrier(arrived);
    hopfuse::grid_barrier(arrived);
    out[at] = next;
}

extern "C" __global__ void missing_grid_barrier_fixed(const int* in, int* out) {
    unsigned* const arrived = reinterpret_cast<unsigned*>(out + gridDim.x * blockDim.x);
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at];
    hopfuse::grid_barrier(arrived);
    const int next = out[(at + blockDim.x) % (gridDim.x * blockDim.x)];
    hopfuse::grid_barrier(arrived);
    out[at] = next;
}
