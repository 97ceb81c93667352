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

template <int L>
HOPFUSE_DEVICE void put_column(const JoinRoom& room, int64_t place, const Measured& own) {
    double* const at = room.columns + place * 2 * L + threadIdx.x;
    at[0] = own.sum;
    at[L] = own.largest;
}

template <int L>
HOPFUSE_DEVICE Measured column_of(const JoinRoom& room, int64_t place, int lane) {
    const double* const at = room.columns + place * 2 * L + lane;
    return Measured{at[0], at[L]};
}

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

// Joins `count` columns, for the first L threads.
template <int L>
HOPFUSE_DEVICE Measured join_columns(const JoinRoom& room, int64_t first, int64_t count, double* values) {
    Measured mine = {0.0, 0.0};
    for (int64_t i = threadIdx.x / L; i < count; i += blockDim.x / L)
        mine.join(column_of<L>(room, first + i, static_cast<int>(threadIdx.x) % L));
    return join_block<L>(mine, values);
}

// Joins what the threads of all blocks have measured, first in groups of blocks and then across groups. True in the last
// block, whose first L threads get the total. Called by whole blocks of at most 256 threads.
template <int L>
HOPFUSE_DEVICE bool join_grid(Measured& mine, const JoinRoom& room, JoinShared* shared) {
    const int64_t blocks = gridDim.x, groups = (blocks + JOIN_GROUP - 1) / JOIN_GROUP;
    const int64_t group = blockIdx.x / JOIN_GROUP, first = group * JOIN_GROUP;
    const int64_t members = blocks - first < JOIN_GROUP ? blocks - first : JOIN_GROUP;
    mine = join_block<L>(mine, shared->values);
    if (blocks == 1) return true;
    if (threadIdx.x < L) put_column<L>(room, blockIdx.x, mine);
    if (!is_last_block(room.arrived + 1 + group, static_cast<unsigned>(members), &shared->is_last)) return false;
    mine = join_columns<L>(room, first, members, shared->values);
    if (groups == 1) return true;
    if (threadIdx.x < L) put_column<L>(room, blocks + group, mine);
    if (!is_last_block(room.arrived, static_cast<unsigned>(groups), &shared->is_last)) return false;
    mine = join_columns<L>(room, blocks, groups, shared->values);
    return true;
}

// Called by the first L threads; (2, L).
template <int L>
HOPFUSE_DEVICE void put_measured(const Measured& all, double* measured) {
    measured[threadIdx.x] = all.sum;
    measured[L + threadIdx.x] = all.largest;
}

}  // namespace hopfuse
