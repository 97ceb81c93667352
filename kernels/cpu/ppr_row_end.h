// What a pass does with the sum over a row's entries: it computes and measures the row's new state. Included once per
// instruction set.
#pragma once

#include "ppr_block.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// What a pass writes and measures. iterate: writes the next iterate, measures |z - y|. gap: writes and measures |z - y|.
// average: measures z, which is at least 0, and writes nothing.
enum class PassResult { iterate, gap, average };

struct PassOptions {
    const float *damping, *omega;  // (L,)
    bool measure;                  // whether to find the largest value
    const double* anchor;          // (L,) of the residual, if that is also measured, else null
    PassResult result = PassResult::iterate;
};

template <int L>
HF_INLINE void prefetch_row(const float* state, int64_t row) {
    for (int line = 0; line < L; line += 16) __builtin_prefetch(state + row * L + line);
}

// deg |z - y| in float32, rounded to the residual's grain.
template <int L>
HF_INLINE D<L> residual_terms(F<L> weight, F<L> gap, D<L> anchor) {
    alignas(64) float terms[L];
    F<L>::store(terms, F<L>::mul(weight, gap));
    return to_grains<L>(D<L>::widen(terms), anchor);
}

// The factor g at the end of a row; null: all 1.
template <int L>
HF_INLINE const float* row_factors(const BlockRows<L>& block) {
    if (!block.queries.per_type) return block.scale32;
    return block.attraction == nullptr ? block.unscale32 : block.attraction;
}

// Takes the sums of rows. Reads `current` (pass 1: b) and, for Chebyshev, the iterate before it in `next` (pass 1: 0,
// pass 2: b), and writes `next`. Measurements are accumulated over all rows taken. Holds its inputs by value, so that the
// compiler knows that storing a row does not change them.
template <int L>
class RowEnd {
public:
    RowEnd(const BlockRows<L>& shared, const PassOptions& options)
        : block_(shared), g_(row_factors(shared)), damping_(F<L>::load(options.damping)),
          omega_(F<L>::load(options.omega)), result_(options.result), measure_(options.measure),
          sums_residual_(options.anchor != nullptr),
          anchor_(sums_residual_ ? D<L>::load(options.anchor) : D<L>::zero()) {}

    // Prefetches what a later row reads: gathers keep the processor from recognising these streams.
    HF_MEMBER void look_ahead(int64_t row) const {
        if (result_ != PassResult::average) prefetch_row<L>(block_.next, row);
        if (block_.all_restart) prefetch_row<L>(block_.restart32, row);
        if (!block_.per_lane) return;
        if (g_ != nullptr) prefetch_row<L>(g_, row);
        if (sums_residual_ && block_.unscale32 != nullptr) prefetch_row<L>(block_.unscale32, row);
    }

    HF_MEMBER void take(int64_t row, F<L> sum, bool is_empty) {
        float* target = block_.next + row * L;
        const bool restarts = block_.has_restart(row);
        const F<L> b = restarts ? F<L>::load(block_.restart32 + block_.restart_index(row) * L) : F<L>::zero();
        const F<L> z = F<L>::fma(scale(row), sum, b);
        F<L> gap = z;
        if (measure_) {
            if (result_ != PassResult::average) gap = gap_of(row, z, b);
            if (sums_residual_)
                residual_ = D<L>::add(residual_, residual_terms<L>(node_weight32<L>(block_, row), gap, anchor_));
            largest_ = F<L>::max(largest_, over_attraction<L>(block_, row, gap));
        }
        if (result_ == PassResult::average) return;
        if (result_ == PassResult::gap) {
            F<L>::store(target, gap);
        } else if (block_.chebyshev && !is_empty) {
            const F<L> before = block_.pass == 1 ? F<L>::zero() : block_.pass == 2 ? b : F<L>::load(target);
            const F<L> moved = F<L>::fma(omega_, F<L>::sub(z, before), before);
            F<L>::store(target, restarts && block_.has_lone_seed ? keep_lone(row, z, moved) : moved);
        } else {
            F<L>::store(target, z);
        }
    }

    // Whether rows row .. row + 7 (row is a multiple of 8) neither restart nor are measured, in a pass after the second.
    HF_MEMBER bool are_plain(int64_t row) const {
        return !measure_ && ((block_.words[row >> 6] >> (row & 63)) & 0xffu) == 0;
    }

    // Takes such rows, none of them empty: `sums` is (8, L).
    HF_MEMBER void take_plain(int64_t row, const float* sums) {
        if constexpr (L == 1) {
            const F<8> d = F<8>::all(damping_.v), gd = g_ == nullptr ? d : F<8>::mul(F<8>::load(g_ + row), d);
            move(row, gd, F<8>::all(omega_.v), F<8>::load(sums));
        } else {
            HF_UNROLL for (int i = 0; i < 8; ++i) move(row + i, scale(row + i), omega_, F<L>::load(sums + i * L));
        }
    }

    // A row that is known to stay 0.
    HF_MEMBER void skip(int64_t row) { F<L>::store(block_.next + row * L, F<L>::zero()); }

    // Adds the measurements to those of the thread.
    HF_MEMBER void join_sums(int thread) const {
        if (!measure_) return;
        alignas(64) float largest[L];
        F<L>::store(largest, largest_);
        LaneSums<L> mine;
        mine.sum = residual_, mine.largest = D<L>::widen(largest);
        block_.sums[thread].join(mine);
    }

private:
    // Writes the state from `row` on, of rows that are not empty and do not restart.
    template <class Values>
    HF_MEMBER void move(int64_t row, Values factor, Values omega, Values sum) {
        float* const target = block_.next + row * L;
        const Values z = Values::fma(factor, Values::add(Values::zero(), sum), Values::zero());
        const Values before = Values::load(target);
        const Values moved = Values::fma(omega, Values::sub(z, before), before);
        Values::store(target, block_.chebyshev ? moved : z);
    }

    // |z - y|
    HF_MEMBER F<L> gap_of(int64_t row, F<L> z, F<L> b) const {
        const F<L> y = block_.pass == 1 ? b : F<L>::load(block_.current + row * L);
        return F<L>::abs(F<L>::sub(z, y));
    }

    // Keeps z in lanes where all neighbours of a row are excluded or none of its edges has a weight.
    HF_MEMBER F<L> keep_lone(int64_t row, F<L> z, F<L> moved) const {
        float kept[L], following[L];
        F<L>::store(kept, z), F<L>::store(following, moved);
        for (int lane = 0; lane < L; ++lane)
            if (!(block_.scale64[row * L + lane] > 0.0)) following[lane] = kept[lane];
        return F<L>::load(following);
    }

    // fl(g_v fl(d)); for per_type g is the node weight: 1, or 0 in lanes that may not hold mass here.
    HF_MEMBER F<L> scale(int64_t row) const {
        return g_ == nullptr ? damping_ : F<L>::mul(lanes32<L>(g_, row, block_.per_lane), damping_);
    }

    const BlockRows<L> block_;
    const float* const g_;
    const F<L> damping_, omega_;
    const PassResult result_;
    const bool measure_, sums_residual_;
    const D<L> anchor_;
    D<L> residual_ = D<L>::zero();
    F<L> largest_ = F<L>::zero();
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
