// Sums and maxima over the rows of a block, one lane per query. Any thread may take a row: hopfuse/ppr_sum.h explains why
// the total does not depend on the order. Included once per instruction set.
#pragma once

#include "hopfuse/ppr_sum.h"
#include "simd.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Terms, rounded to the grains of anchors.
template <int L>
HF_INLINE D<L> to_grains(D<L> terms, D<L> anchor) {
    return D<L>::sub(D<L>::add(terms, anchor), anchor);
}

// A thread's sums, and maxima of values that are at least 0. `second` is a sum of other terms.
template <int L>
struct alignas(64) LaneSums {
    D<L> sum = D<L>::zero(), second = D<L>::zero(), largest = D<L>::zero();

    // Adds terms, rounded to their grain.
    HF_MEMBER void add(D<L> v) { sum = D<L>::add(sum, to_grains<L>(v, D<L>::all(PPR_ANCHOR))); }

    HF_MEMBER void join(const LaneSums& other) {
        sum = D<L>::add(sum, other.sum);
        second = D<L>::add(second, other.second);
        largest = D<L>::max(largest, other.largest);
    }

    // Writes the sums of float64 terms.
    void value(double* sums) const {
        D<L>::store(sums, sum);
        for (int lane = 0; lane < L; ++lane) sums[lane] = ppr_sum(sums[lane]);
    }
};

// Joins W values at once, each L of which are those of a row, to those of L lanes.
template <int W, int L>
void join_rows(D<W> sum, D<W> largest, LaneSums<L>& all) {
    alignas(64) double sums[W], most[W];
    D<W>::store(sums, sum), D<W>::store(most, largest);
    for (int first = 0; first < W; first += L) {
        all.sum = D<L>::add(all.sum, D<L>::load(sums + first));
        all.largest = D<L>::max(all.largest, D<L>::load(most + first));
    }
}

// The total of all threads, each of which has its own LaneSums.
template <int L>
LaneSums<L> joined(const LaneSums<L>* room, int threads) {
    LaneSums<L> all;
    for (int thread = 0; thread < threads; ++thread) all.join(room[thread]);
    return all;
}

// Calls take(tile, sums) for every tile, several tiles at a time; returns the total. `room` has one element per thread.
template <int L, class Take>
LaneSums<L> sum_tiles(int64_t tiles, int64_t chunk, const Execution& execution, LaneSums<L>* room, const Take& take) {
    for (int thread = 0; thread < execution.threads; ++thread) room[thread] = LaneSums<L>();
    parallel_for(tiles, chunk, execution, [&](int64_t tile, int thread) {
        LaneSums<L> sums;
        take(tile, sums);
        room[thread].join(sums);
    });
    return joined(room, execution.threads);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
