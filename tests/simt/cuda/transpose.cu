// out = in', tile by tile through shared memory. Block (32, 8).

extern "C" __global__ void transpose_f32(const float* __restrict__ in, float* __restrict__ out, int rows, int columns) {
    __shared__ float tile[32][33];
    const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
    for (int r = static_cast<int>(threadIdx.y); r < 32; r += 8) {
        const int row = static_cast<int>(blockIdx.y) * 32 + r;
        if (row < rows && column < columns) tile[r][threadIdx.x] = in[row * columns + column];
    }
    __syncthreads();
    const int row = static_cast<int>(blockIdx.y * 32 + threadIdx.x);
    for (int c = static_cast<int>(threadIdx.y); c < 32; c += 8) {
        const int target = static_cast<int>(blockIdx.x) * 32 + c;
        if (row < rows && target < columns) out[target * rows + row] = tile[threadIdx.x][c];
    }
}
