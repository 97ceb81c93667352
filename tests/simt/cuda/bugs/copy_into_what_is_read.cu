// Each block reverses two runs of 64 values. The bug: the second run's copies begin while other threads still read the first.
#include "hopfuse/device.h"

template <bool IsFixed>
static __device__ void reverse(int* kept, const int* in, int* out) {
    const unsigned thread = threadIdx.x;
    for (unsigned run = 0; run < 2; ++run) {
        const unsigned first = (blockIdx.x * 2 + run) * 64;
        if (thread < 16) hopfuse::copy_sixteen(kept + thread * 4, in + first + thread * 4, true);
        hopfuse::end_copies();
        hopfuse::await_copies<0>();
        __syncthreads();
        out[first + thread] = kept[63 - thread];
        if (IsFixed) __syncthreads();
    }
}

extern "C" __global__ void copy_into_what_is_read_bug(const int* in, int* out) {
    __shared__ __align__(16) int kept[64];
    reverse<false>(kept, in, out);
}

extern "C" __global__ void copy_into_what_is_read_fixed(const int* in, int* out) {
    __shared__ __align__(16) int kept[64];
    reverse<true>(kept, in, out);
}
