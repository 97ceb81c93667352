// Sums over all blocks of a launch, completed in the same launch: the last block to arrive combines the threads' values per
// lane. Device code only.
#pragma once

#include "arguments/grid_join.h"
#include "grains.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"

namespace hopfuse {

// What a kernel measures for some rows and a lane: sums of whole grains, which are exact in any order, and maxima.
struct Measured {
    double sum, largest;

    __device__ void join(const Measured& other) {
        sum = sum + other.sum;
        largest = larger(largest, other.largest);
    }
};

// Joins the values of a block's threads, where thread t has lane t % L; the first L threads get the results. `all` is the
// neutral value.
template <int L, class Join>
HOPFUSE_DEVICE double join_threads(double mine, double* values, Join join, double all = 0.0) {
    values[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x < L)
        for (unsigned thread = threadIdx.x; thread < blockDim.x; thread += L) all = join(all, values[thread]);
    __syncthreads();
    return all;
}

struct Sum {
    __device__ double operator()(double a, double b) const { return a + b; }
};

struct Largest {
    __device__ double operator()(double a, double b) const { return larger(a, b); }
};

struct Least {
    __device__ double operator()(double a, double b) const { return b < a ? b : a; }
};

template <int L>
HOPFUSE_DEVICE Measured join_block(const Measured& mine, double* values) {
    const double sum = join_threads<L>(mine.sum, values, Sum{});
    return Measured{sum, join_threads<L>(mine.largest, values, Largest{})};
}

// The same of threads that have four lanes each, thread t those from 4 (t % (L / 4)) on. Called by whole warps.
template <int L, class Join>
HOPFUSE_DEVICE double join_quads(double (&mine)[4], double* values, Join join) {
    constexpr int quads = L / 4, least = L == 4 ? 1 : quads;
#pragma unroll
    for (int distance = 16; distance >= least; distance /= 2)
#pragma unroll
        for (int i = 0; i < 4; ++i) mine[i] = join(mine[i], __shfl_xor_sync(0xffffffffu, mine[i], distance));
    const int place = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    if (place < quads)
        for (int i = 0; i < 4; ++i) values[warp * L + 4 * place + i] = mine[i];
    __syncthreads();
    double all = 0.0;
    if (threadIdx.x < L)
        for (unsigned at = threadIdx.x; at < blockDim.x / 32 * L; at += L) all = join(all, values[at]);
    __syncthreads();
    return all;
}

// What the threads of a launch's blocks put in a place; the last block takes it, and leaves 0.
template <int L>
struct JoinPlace {
    double* at;

    __device__ JoinPlace(const JoinRoom& room, unsigned place, int lane)
        : at(room.columns + place * (MEASURED_COLUMNS * L) + lane) {}

    __device__ void join(const Measured& own) {
        atomicAdd(at, own.sum);
        atomicMax(reinterpret_cast<unsigned long long*>(at + L), double_to_bits(own.largest));
    }
    __device__ Measured take() {
        const Measured all = {at[0], at[L]};
        at[0] = at[L] = 0.0;
        return all;
    }
};

// Joins what blocks have measured: each adds to one of few places, and the last one joins these. True in the last block, whose
// first L threads get the total. Called by whole blocks of at most 256 threads, whose first L threads have the block's values.
template <int L>
HOPFUSE_DEVICE bool join_blocks(Measured& mine, const JoinRoom& room, JoinShared* shared) {
    const unsigned blocks = gridDim.x, places = blocks < JOIN_PLACES ? blocks : JOIN_PLACES;
    const unsigned place = blockIdx.x % JOIN_PLACES, members = (blocks - place + JOIN_PLACES - 1) / JOIN_PLACES;
    if (blocks == 1) return true;
    if (threadIdx.x < L) JoinPlace<L>(room, place, static_cast<int>(threadIdx.x)).join(mine);
    if (!is_last_block(room.arrived + 1 + place, members, &shared->is_last)) return false;
    if (!is_last_block(room.arrived, places, &shared->is_last)) return false;
    mine = Measured{0.0, 0.0};
    for (unsigned at = threadIdx.x / L; at < places; at += blockDim.x / L)
        mine.join(JoinPlace<L>(room, at, static_cast<int>(threadIdx.x) % L).take());
    mine = join_block<L>(mine, shared->values);
    return true;
}

// The same of what the threads have measured, thread t for lane t % L.
template <int L>
HOPFUSE_DEVICE bool join_grid(Measured& mine, const JoinRoom& room, JoinShared* shared) {
    mine = join_block<L>(mine, shared->values);
    return join_blocks<L>(mine, room, shared);
}

// Called by the first L threads; (2, L).
template <int L>
HOPFUSE_DEVICE void put_measured(const Measured& all, double* measured) {
    measured[threadIdx.x] = all.sum;
    measured[L + threadIdx.x] = all.largest;
}

}  // namespace hopfuse
