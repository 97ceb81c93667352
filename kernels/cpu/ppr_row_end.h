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

// What a pass measures, of W values at once: those of the lanes of a row, or of several rows of one lane.
template <int W>
struct Measured {
    D<W> residual = D<W>::zero();
    F<W> largest = F<W>::zero();

    HF_MEMBER void add(F<W> weight, F<W> gap, F<W> relative, bool sums_residual, D<W> anchor) {
        if (sums_residual) residual = D<W>::add(residual, residual_terms<W>(weight, gap, anchor));
        largest = F<W>::max(largest, relative);
    }

    // Joins them to those of L lanes.
    template <int L>
    void join_to(LaneSums<L>& sums) const {
        alignas(64) float most[W];
        F<W>::store(most, largest);
        join_rows(residual, D<W>::widen(most), sums);
    }
};

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
            measured_.add(node_weight32<L>(block_, row), gap, over_attraction<L>(block_, row, gap), sums_residual_,
                          anchor_);
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

    // Whether none of rows row .. row + 7 (row is a multiple of 8) restarts, in a pass after the second that writes iterates.
    HF_MEMBER bool are_plain(int64_t row) const { return result_ == PassResult::iterate && !block_.have_restart(row); }

    // Takes such rows, none of them empty: `sums` is (8, L).
    HF_MEMBER void take_plain(int64_t row, const float* sums) {
        if constexpr (L == 1) take_plain(row, F<8>::load(sums), wide_);
        else HF_UNROLL for (int i = 0; i < 8; ++i) take_plain(row + i, F<L>::load(sums + i * L), measured_);
    }

    // A row that is known to stay 0.
    HF_MEMBER void skip(int64_t row) { F<L>::store(block_.next + row * L, F<L>::zero()); }

    // Adds the measurements to those of the thread.
    HF_MEMBER void join_sums(int thread) const {
        if (!measure_) return;
        LaneSums<L>& all = block_.sums[thread];
        measured_.join_to(all);
        wide_.join_to(all);
    }

private:
    static constexpr int width = L == 1 ? 8 : L;

    // Takes W / L such rows.
    template <int W>
    HF_MEMBER void take_plain(int64_t row, F<W> sum, Measured<W>& measured) {
        const F<W> z = F<W>::fma(scale<W>(row), F<W>::add(F<W>::zero(), sum), F<W>::zero());
        if (measure_) {
            const F<W> gap = F<W>::abs(F<W>::sub(z, F<W>::load(block_.current + row * L)));
            measured.add(node_weight32<L, W>(block_, row), gap, over_attraction<L>(block_, row, gap), sums_residual_,
                         of_rows<W>(anchor_));
        }
        float* const target = block_.next + row * L;
        const F<W> before = F<W>::load(target);
        const F<W> moved = F<W>::fma(of_rows<W>(omega_), F<W>::sub(z, before), before);
        F<W>::store(target, block_.chebyshev ? moved : z);
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
    template <int W = L>
    HF_MEMBER F<W> scale(int64_t row) const {
        const F<W> damping = of_rows<W>(damping_);
        return g_ == nullptr ? damping : F<W>::mul(lanes32<L, W>(g_, row, block_.per_lane), damping);
    }

    const BlockRows<L> block_;
    const float* const g_;
    const F<L> damping_, omega_;
    const PassResult result_;
    const bool measure_, sums_residual_;
    const D<L> anchor_;
    Measured<L> measured_;
    Measured<width> wide_;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
