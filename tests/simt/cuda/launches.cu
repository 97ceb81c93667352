// Kernels that a launch should refuse or survive, and two that a macro makes.
#include "hopfuse/device.h"

constexpr int MOST_THREADS = 64;

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 2) bounded(int* out) { out[threadIdx.x] = 1; }

extern "C" __launch_bounds__(2 * (MOST_THREADS / 2)) __global__ void bounded_before(int* out) { out[threadIdx.x] = 2; }

extern "C" __global__ void large_static_shared(int* out) {
    __shared__ int most[12 * 1024];
    for (int i = static_cast<int>(threadIdx.x); i < 12 * 1024; i += static_cast<int>(blockDim.x)) most[i] = i;
    __syncthreads();
    out[threadIdx.x] = most[12 * 1024 - 1 - threadIdx.x];
}

extern "C" __global__ void dynamic_shared_words(unsigned* out) {
    HOPFUSE_DYNAMIC_SHARED(unsigned, word);
    out[blockIdx.x * blockDim.x + threadIdx.x] = word[threadIdx.x];
    word[threadIdx.x] = blockIdx.x;
}

extern "C" __global__ void static_shared_words(unsigned* out) {
    __shared__ unsigned word[32];
    out[blockIdx.x * blockDim.x + threadIdx.x] = word[threadIdx.x];
    word[threadIdx.x] = blockIdx.x;
}

// Each block keeps its number in shared memory while it waits for the others, at counters that are `apart`.
extern "C" __global__ void meets(unsigned* arrived, int apart, unsigned* out) {
    HOPFUSE_DYNAMIC_SHARED(unsigned, word);
    word[threadIdx.x] = blockIdx.x;
    hopfuse::grid_barrier(arrived + static_cast<int>(blockIdx.x) * apart);
    out[blockIdx.x * blockDim.x + threadIdx.x] = word[threadIdx.x];
}

extern "C" __global__ void copies(const float* in, float* out, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) out[i] = in[i];
}

extern "C" __global__ void divides(const int* in, int* out) { out[threadIdx.x] = 100 / in[threadIdx.x]; }

__device__ int deeper(const int* in, int depth) {
    volatile int room[256];
    room[depth % 256] = in[0] + depth;
    return depth == in[0] ? room[depth % 256] : deeper(in, depth + 1) + room[depth % 256];
}
extern "C" __global__ void recurses(const int* in, int* out) { out[threadIdx.x] = deeper(in, 0); }

extern "C" __global__ void traps(const int* in) {
    if (in[threadIdx.x] < 0) __trap();
}

// Who came first, by an atomic; and who by the order of the threads alone.
extern "C" __global__ void arrivals(int* counter, int* place) {
    place[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
}

extern "C" __global__ void partial_warp(int* out, unsigned mask) {
    out[threadIdx.x] = __shfl_sync(mask, static_cast<int>(threadIdx.x), 0);
}

extern "C" __global__ void odd_width(int* out) { out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0, 12); }

// Takes a lock around a count that is not atomic.
extern "C" __global__ void counts_under_lock(int* lock, int* count) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    const int before = atomicAdd(count, 0);
    atomicExch(count, before + 1);
    atomicExch(lock, 0);
}

#define SCALED(name, factor)                                       \
    extern "C" __global__ void name##_by_##factor(int* out) {      \
        out[threadIdx.x] = static_cast<int>(threadIdx.x) * factor; \
    }
SCALED(scaled, 2)
SCALED(scaled, 3)

struct Sums {
    int n;
    const float *a, *b;  // b or null: nothing is added
    float* out;
};

extern "C" __global__ void adds_by_struct(Sums given) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < given.n) given.out[i] = given.a[i] + (given.b == nullptr ? 0.0f : given.b[i]);
}
