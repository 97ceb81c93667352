// A warp as a team of hopfuse/scalar.h, so that kernels use the same source as the host's loops and give the same bits.
#pragma once

#include "hopfuse/device.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr unsigned ALL_LANES = 0xffffffffu;

// Lane j is accumulator j.
struct Warp {
    int lane;

    template <class F>
    __device__ void each(int64_t n, F f) const {
        HOPFUSE_ROLLED
        for (int64_t i = lane; i < n; i += 32) f(i);
    }

    template <class F>
    __device__ auto sum(int64_t n, F f) const -> decltype(f(n)) {
        using T = decltype(f(n));
        T upper[LEVELS] = {};  // this lane's accumulators of the levels above the first
        T total = 0;
        for (int64_t first = 0; first < n; first += 1024) {
            const int64_t end = n - first < 1024 ? n : first + 1024;
            T mine = 0;
            HOPFUSE_ROLLED
            for (int64_t i = first + lane; i < end; i += 32) mine = mine + f(i);
            total = add_lanes(mine);
            if (n > 1024) total = carry(total, first / 1024, end == n, upper);
        }
        return total;
    }

    template <class F>
    __device__ void alone(F f) const {
        __syncwarp();
        if (lane == 0) f();
        __syncwarp();
    }

    __device__ float least(float mine) const {
        for (int step = 16; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(ALL_LANES, mine, step);
            mine = other < mine ? other : mine;
        }
        return mine;
    }

private:
    static constexpr int LEVELS = 3;  // 2^40 values

    // Adds j and j + 16, 8, 4, 2, 1. Each lane adds a pair in one order or the other, so all have the same total.
    template <class T>
    __device__ T add_lanes(T mine) const {
        for (int step = 16; step > 0; step /= 2) mine = mine + __shfl_xor_sync(ALL_LANES, mine, step);
        return mine;
    }

    // Moves the total of block number `block` one level up, and from there each level that is full or has the last block.
    template <class T>
    __device__ T carry(T total, int64_t block, bool last, T (&upper)[LEVELS]) const {
#pragma unroll
        for (int level = 0; level < LEVELS; ++level) {
            if ((block & 31) == lane) upper[level] = upper[level] + total;
            if (!last && (block & 1023) != 1023) break;
            total = add_lanes(upper[level]);
            upper[level] = 0;
            block /= 1024;
        }
        return total;
    }
};

}  // namespace hopfuse
