// The sum of four values from the second on. The bug: they are loaded as one vector, four bytes off.

extern "C" __global__ void misaligned_vector_load_bug(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int4 v = *reinterpret_cast<const int4*>(in + 4 * i + 1);
    out[i] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void misaligned_vector_load_fixed(const int* in, int* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int4 v = *reinterpret_cast<const int4*>(in + 4 * i);
    out[i] = v.y + v.z + v.w + in[4 * i + 4];
}
