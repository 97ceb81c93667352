// What a GPU's memory, caches, launches and barriers take by themselves: the constants of bench/gpu_cards.py. Each writes what it
// read, which is compared.
#include "hopfuse/device.h"
#include "hopfuse/integers.h"

namespace {

constexpr int AHEAD = 8;

HOPFUSE_DEVICE float sum_of(const float4& four) { return four.x + four.y + four.z + four.w; }

// Rows of 4 T numbers, read by T neighbours, AHEAD of them at a time; `count` rows for each T threads.
template <int T>
HOPFUSE_DEVICE void gather(const float4* table, const int* rows, int count, float* out) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int* const own = rows + thread / T * count;
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < count; first += AHEAD) {
        float4 y[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) y[i] = table[static_cast<int64_t>(own[first + i]) * T + thread % T];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) sum = sum + sum_of(y[i]);
    }
    out[thread] = sum;
}

}  // namespace

// Every kernel: Block: 256. Shared memory: 0.
//
// probe_nothing: returns. Registers: <= 16.
// probe_copy: copies `count` times four numbers. Registers: <= 48.
// probe_gather_BYTES: gathers rows of so many bytes; sums of a thread's numbers. Registers: <= 64.
// probe_chase: one thread follows `steps` links, from where *at says, and writes there where they end. Registers: <= 32.
// probe_barrier: a cooperative launch passes `count` grid barriers, and adds up the blocks that came. Registers: <= 32.
extern "C" __global__ void __launch_bounds__(256) probe_nothing(int* out) {
    if (out != nullptr) *out = 1;
}

extern "C" __global__ void __launch_bounds__(256) probe_copy(const float4* from, float4* to, int64_t count) {
    const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
        to[i] = from[i];
}

#define HOPFUSE_GATHER(bytes, T)                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                       \
        probe_gather_##bytes(const float4* table, const int* rows, int count, float* out) { \
        gather<T>(table, rows, count, out);                                                 \
    }

HOPFUSE_GATHER(16, 1)
HOPFUSE_GATHER(32, 2)
HOPFUSE_GATHER(64, 4)
HOPFUSE_GATHER(128, 8)

extern "C" __global__ void __launch_bounds__(256) probe_chase(const int* next, int steps, int* at) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    int link = *at;
    for (int i = 0; i < steps; ++i) link = next[static_cast<int64_t>(link) * 32];  // a line of 128 bytes for each
    *at = link;
}

extern "C" __global__ void __launch_bounds__(256) probe_barrier(unsigned* arrived, int count, int* came) {
    for (int i = 0; i < count; ++i) {
        if (threadIdx.x == 0) atomicAdd(came, 1);
        hopfuse::grid_barrier(arrived);
    }
}
