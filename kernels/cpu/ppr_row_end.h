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
          sums_residual_(options.anchor != nullptr), restart_everywhere_(shared.all_restart && !shared.has_lone_seed),
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
        const bool restarts = block_.has_restart(row);
        const F<L> b = restarts ? F<L>::load(block_.restart32 + block_.restart_index(row) * L) : F<L>::zero();
        end(row, sum, b, is_empty, restarts && block_.has_lone_seed, measured_);
    }

    // Whether rows row .. row + 7 (row is a multiple of 8), none of them empty, can be taken together: all or none restart.
    HF_MEMBER bool are_plain(int64_t row) const { return restart_everywhere_ || !block_.have_restart(row); }

    // Takes such rows: `sums` is (8, L).
    HF_MEMBER void take_plain(int64_t row, const float* sums) {
        if constexpr (L == 1) take_plain(row, F<8>::load(sums), wide_);
        else
            for (int i = 0; i < 8; ++i) take_plain(row + i, F<L>::load(sums + i * L), measured_);
    }

    // Rows that are known to stay 0.
    HF_MEMBER void skip(int64_t row, int64_t count) {
        std::memset(block_.next + row * L, 0, size_t(count) * L * sizeof(float));
    }

    // Adds the measurements to those of the thread.
    HF_MEMBER void join_sums(int thread) const {
        if (!measure_) return;
        LaneSums<L>& all = block_.sums[thread];
        measured_.join_to(all);
        wide_.join_to(all);
    }

private:
    static constexpr int width = L == 1 ? 8 : L;

    template <int W>
    HF_MEMBER void take_plain(int64_t row, F<W> sum, Measured<W>& measured) {
        const F<W> b = restart_everywhere_ ? F<W>::load(block_.restart32 + row * L) : F<W>::zero();
        end(row, F<W>::add(F<W>::zero(), sum), b, false, false, measured);
    }

    // Takes W / L rows; `is_lone`: some lane restarts at this one and has no way out of it.
    template <int W>
    HF_MEMBER void end(int64_t row, F<W> sum, F<W> b, bool is_empty, bool is_lone, Measured<W>& measured) {
        float* const target = block_.next + row * L;
        const F<W> z = F<W>::fma(scale<W>(row), sum, b);
        F<W> gap = z;
        if (measure_) {
            if (result_ != PassResult::average) {
                const F<W> y = block_.pass == 1 ? b : F<W>::load(block_.current + row * L);
                gap = F<W>::abs(F<W>::sub(z, y));
            }
            measured.add(node_weight32<L, W>(block_, row), gap, over_attraction<L>(block_, row, gap), sums_residual_,
                         of_rows<W>(anchor_));
        }
        if (result_ == PassResult::average) return;
        if (result_ == PassResult::gap) {
            F<W>::store(target, gap);
        } else if (block_.chebyshev && !is_empty) {
            const F<W> before = block_.pass == 1 ? F<W>::zero() : block_.pass == 2 ? b : F<W>::load(target);
            F<W> moved = F<W>::fma(of_rows<W>(omega_), F<W>::sub(z, before), before);
            if constexpr (W == L) moved = is_lone ? keep_lone(row, z, moved) : moved;
            F<W>::store(target, moved);
        } else {
            F<W>::store(target, z);
        }
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
    const bool measure_, sums_residual_, restart_everywhere_;
    const D<L> anchor_;
    Measured<L> measured_;
    Measured<width> wide_;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
