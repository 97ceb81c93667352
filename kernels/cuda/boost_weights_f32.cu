// Raises the weights of passages in a list, on a device. kernels/cpu/seeds.cpp gives the same bits.
#include "arguments/boost_weights_f32.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/query_status.h"
#include "hopfuse/scalar.h"

// boost_weights_f32: multiplies, in place and in float32, the weights (B, columns) of a query's hits with score > 0 by
// 1 + strength (score / the query's largest score). Hits are columns, each at most once.
// Unit: a query; a block. Block: 256. Shared memory: 8 bytes. Registers: <= 40 (occupancy 75 %).
// Bytes: 24 a hit, of which 8 are gathered.
extern "C" __global__ void __launch_bounds__(256)
    boost_weights_f32(float* weights, int64_t columns, const int64_t* ids, const float* scores, const int64_t* counts,
                      int k, float strength, int32_t* status) {
    using namespace hopfuse;
    __shared__ unsigned largest, outside;
    const int64_t query = blockIdx.x;
    const int count = static_cast<int>(counts[query]);
    float* const mine = weights + query * columns;
    ids += query * k;
    scores += query * k;
    if (threadIdx.x == 0) largest = 0, outside = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
        if (ids[i] < 0 || ids[i] >= columns) atomicMax(&outside, 1u);
        // Positive numbers have the same order as their bits.
        if (scores[i] > 0.0f) atomicMax(&largest, float_to_bits(scores[i]));
    }
    __syncthreads();
    if (threadIdx.x == 0) status[query] = outside != 0 ? status_document_outside : status_complete;
    const float most = bits_to_float(largest);
    for (int i = static_cast<int>(threadIdx.x); outside == 0 && i < count; i += static_cast<int>(blockDim.x))
        if (scores[i] > 0.0f) mine[ids[i]] = mine[ids[i]] * (1.0f + strength * (scores[i] / most));
}

HOPFUSE_KERNEL_TYPE(boost_weights_f32, hopfuse::BoostWeightsKernel);
