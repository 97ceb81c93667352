// The last digit of each value times 10^8 + 7. The bug: the product needs more than 32 bits.

extern "C" __global__ void integer_overflow_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int product = in[i] * 100000007;
    out[i] = product % 10;
}

extern "C" __global__ void integer_overflow_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long product = in[i] * 100000007LL;
    out[i] = static_cast<int>(product % 10);
}
