// Each block reverses two runs of 64 values, which it copies ahead. The bug: it waits for all groups of copies but one when it
// needs the last.
#include "hopfuse/device.h"

template <bool IsFixed>
static __device__ void reverse(int* kept, const int* in, int* out) {
    const unsigned thread = threadIdx.x, first = blockIdx.x * 128;
    for (unsigned run = 0; run < 2; ++run) {
        if (thread < 16) hopfuse::copy_sixteen(kept + run * 64 + thread * 4, in + first + run * 64 + thread * 4, true);
        hopfuse::end_copies();
    }
    hopfuse::await_copies<1>();
    __syncthreads();
    out[first + thread] = kept[63 - thread];
    if (IsFixed) hopfuse::await_copies<0>();
    __syncthreads();
    out[first + 64 + thread] = kept[127 - thread];
}

extern "C" __global__ void missing_wait_for_copies_bug(const int* in, int* out) {
    __shared__ __align__(16) int kept[128];
    reverse<false>(kept, in, out);
}

extern "C" __global__ void missing_wait_for_copies_fixed(const int* in, int* out) {
    __shared__ __align__(16) int kept[128];
    reverse<true>(kept, in, out);
}
