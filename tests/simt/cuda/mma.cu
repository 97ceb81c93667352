#include "hopfuse/device.h"

// One warp: sums (32, 4), rows (32, 4) and columns (32, 2), the parts of the lanes.
template <class Sum, class MultiplyAdd>
static __device__ void multiply(Sum* sums, const unsigned* rows, const unsigned* columns,
                                const MultiplyAdd& multiply_add) {
    const int lane = static_cast<int>(threadIdx.x);
    Sum sum[4];
    unsigned row[4], column[2];
    for (int i = 0; i < 4; ++i) sum[i] = sums[4 * lane + i];
    for (int i = 0; i < 4; ++i) row[i] = rows[4 * lane + i];
    for (int i = 0; i < 2; ++i) column[i] = columns[2 * lane + i];
    multiply_add(sum, row, column);
    for (int i = 0; i < 4; ++i) sums[4 * lane + i] = sum[i];
}

extern "C" __global__ void mma_f16(float* sums, const unsigned* rows, const unsigned* columns) {
    multiply(sums, rows, columns, hopfuse::multiply_add<false>);
}

#if HOPFUSE_CAPABILITY >= 80
extern "C" __global__ void mma_bf16(float* sums, const unsigned* rows, const unsigned* columns) {
    multiply(sums, rows, columns, hopfuse::multiply_add<true>);
}
#endif

extern "C" __global__ void mma_bytes(int* sums, const unsigned* rows, const unsigned* columns) {
    multiply(sums, rows, columns, hopfuse::multiply_add_bytes);
}
