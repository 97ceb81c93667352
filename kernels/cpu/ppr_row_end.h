// What a pass does with the sum over a row's entries: the row's new state, and what is measured of it. Included once per
// instruction set.
#pragma once

#include "ppr_block.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct PassOptions {
    const float *damping, *omega;  // (L,)
    bool measure;
    float* gaps;  // (N, L) receives |z - y| of each stored row where rows are not in internal order; else null
};

// Takes rows' sums. Reads `current` (pass 1: b) and, for Chebyshev, the iterate before it in `next` (pass 1: 0, pass 2: b),
// and writes `next`. What is measured is summed over the rows taken, or kept in `gaps`. Holds what it reads by value: no
// store of a row can change it.
template <int L>
class RowEnd {
public:
    RowEnd(const PprBlock<L>& shared, const PassOptions& options)
        : block_(shared), g_(shared.queries.per_type ? shared.unscale32 : shared.scale32),
          damping_(F<L>::load(options.damping)), omega_(F<L>::load(options.omega)), measure_(options.measure),
          gaps_(options.gaps) {}

    HF_MEMBER void take(int64_t row, F<L> sum, bool is_empty) {
        float* target = block_.next + row * L;
        const bool restarts = block_.has_restart(row);
        const F<L> b = restarts ? F<L>::load(block_.restart32 + block_.restart_index(row) * L) : F<L>::zero();
        const F<L> z = F<L>::fma(scale(row), sum, b);
        if (measure_) {
            const F<L> y = block_.pass == 1 ? b : F<L>::load(block_.current + row * L);
            const F<L> gap = F<L>::abs(F<L>::sub(z, y));
            if (gaps_ != nullptr) F<L>::store(gaps_ + row * L, gap);
            else residual_ = F<L>::fma(node_weight32<L>(block_, row), gap, residual_);
            largest_ = F<L>::max(largest_, gap);
        }
        if (block_.chebyshev && !is_empty) {
            const F<L> before = block_.pass == 1 ? F<L>::zero() : block_.pass == 2 ? b : F<L>::load(target);
            F<L>::store(target, F<L>::fma(omega_, F<L>::sub(z, before), before));
        } else {
            F<L>::store(target, z);
        }
    }

    // Whether rows row .. row + 7, row a multiple of 8, neither restart nor are measured, after the second pass.
    HF_MEMBER bool are_plain(int64_t row) const {
        return !measure_ && ((block_.words[row >> 6] >> (row & 63)) & 0xffu) == 0;
    }

    // Takes such rows, none of them empty, where there is one lane.
    HF_MEMBER void take_plain(int64_t row, const float* sums) {
        static_assert(L == 1);
        const F<8> d = F<8>::all(damping_.v), gd = g_ == nullptr ? d : F<8>::mul(F<8>::load(g_ + row), d);
        const F<8> z = F<8>::fma(gd, F<8>::add(F<8>::zero(), F<8>::load(sums)), F<8>::zero());
        float* const target = block_.next + row;
        const F<8> before = F<8>::load(target);
        const F<8> moved = F<8>::fma(F<8>::all(omega_.v), F<8>::sub(z, before), before);
        F<8>::store(target, block_.chebyshev ? moved : z);
    }

    // A row that is known to stay 0.
    HF_MEMBER void skip(int64_t row) {
        F<L>::store(block_.next + row * L, F<L>::zero());
        if (gaps_ != nullptr) F<L>::store(gaps_ + row * L, F<L>::zero());
    }

    // Leaves what was measured as a tile's.
    void store_sums(int64_t tile) const {
        F<L>::store(block_.tile32 + tile * 2 * L, residual_);
        F<L>::store(block_.tile32 + tile * 2 * L + L, largest_);
    }

private:
    // fl(g_v fl(d)); for per_type g is 1, or 0 in lanes that may not hold mass here.
    HF_MEMBER F<L> scale(int64_t row) const {
        return g_ == nullptr ? damping_ : F<L>::mul(lanes32<L>(g_, row, block_.per_lane), damping_);
    }

    const PprBlock<L> block_;
    const float* const g_;
    const F<L> damping_, omega_;
    const bool measure_;
    float* const gaps_;
    F<L> residual_ = F<L>::zero(), largest_ = F<L>::zero();
};

// The tiles' sums of deg |z - y|, in internal order, and largest |z - y|, from what rows left in `gaps`.
template <int L>
void sum_gaps(const PprBlock<L>& block, const float* gaps) {
    parallel_for(block.num_tiles, block.queries.threads, [&](int64_t tile, int) {
        F<L> sum = F<L>::zero(), largest = F<L>::zero();
        for (int64_t node = block.tile_begin(tile); node < block.tile_end(tile); ++node) {
            const int64_t row = row_of_node(block.graph, node);
            const F<L> gap = F<L>::load(gaps + row * L);
            sum = F<L>::fma(node_weight32<L>(block, row), gap, sum);
            largest = F<L>::max(largest, gap);
        }
        F<L>::store(block.tile32 + tile * 2 * L, sum);
        F<L>::store(block.tile32 + tile * 2 * L + L, largest);
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
