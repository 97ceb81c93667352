// y = fma(a, x, y), four at a time where the addresses allow it, and one by one.

extern "C" __global__ void saxpy_f32(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = fmaf(a, __ldg(x + i), y[i]);
}

extern "C" __global__ void saxpy_f32x4(const float4* __restrict__ x, float4* __restrict__ y, float a, int quads) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= quads) return;
    const float4 u = x[i];
    const float4 v = y[i];
    y[i] = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
}
