// Sorts a power of two of keys ascending, with their values, in dynamic shared memory: keys first, then values.
#include "hopfuse/device.h"

extern "C" __global__ void bitonic_sort_f32(float* keys, int* values, int n) {
    HOPFUSE_DYNAMIC_SHARED(float, key);
    int* const value = reinterpret_cast<int*>(key + n);
    const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
    for (int i = first; i < n; i += step) {
        key[i] = keys[i];
        value[i] = values[i];
    }
    __syncthreads();
    for (int size = 2; size <= n; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            for (int i = first; i < n; i += step) {
                const int j = i ^ distance;
                if (j <= i) continue;
                const bool wrong = key[i] > key[j] || (key[i] == key[j] && value[i] > value[j]);
                const bool right = key[i] < key[j] || (key[i] == key[j] && value[i] < value[j]);
                if ((i & size) == 0 ? wrong : right) {
                    const float k = key[i];
                    key[i] = key[j];
                    key[j] = k;
                    const int v = value[i];
                    value[i] = value[j];
                    value[j] = v;
                }
            }
            __syncthreads();
        }
    }
    for (int i = first; i < n; i += step) {
        keys[i] = key[i];
        values[i] = value[i];
    }
}
