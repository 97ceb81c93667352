// Bounds of each node's error that look one step around it, then two: hopfuse/ppr.h, LOCAL BOUNDS. Included once per
// instruction set.
#pragma once

#include "hopfuse/ppr_certificate.h"
#include "ppr_block.h"
#include "ppr_pass.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// An error of at most (local_v + beyond) deg_v at each node v, for lanes whose bound per node holds. Uses up the buffers of
// a walk that has ended.
template <int L>
struct LocalBounds {
    float* local = nullptr;    // (N, L) times the node weight
    float* average = nullptr;  // (N, L) P^steps |rho|, times the node weight
    PassLoss loss[L];
    double beyond[L];
    int steps = 0;
};

// The largest of what `of` says of the block's rows, lane by lane.
template <int L, class Of>
void largest_of_rows(const PprBlock<L>& block, double* largest, const Of& of) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            sums.largest = D<L>::max(sums.largest, of(row));
    };
    D<L>::store(largest, sum_tiles(block.num_tiles, 8, block.queries.threads, block.sums, take).largest);
}

// 1 in lanes where something walks, else 0.
template <int L>
HF_INLINE F<L> walking_lanes(D<L> scales) {
    double scale[L];
    float walks[L];
    D<L>::store(scale, scales);
    for (int lane = 0; lane < L; ++lane) walks[lane] = scale[lane] > 0.0 ? 1.0f : 0.0f;
    return F<L>::load(walks);
}

// What a float32 pass may lose of each lane's averages.
template <int L>
void pass_losses(const PprBlock<L>& block, PassLoss* loss) {
    double scale[L], inverse[L] = {};
    largest_of_rows<L>(block, scale, [&](int64_t row) { return lanes64<L>(block.scale64, row, block.per_lane); });
    if (block.attraction != nullptr)
        largest_of_rows<L>(block, inverse, [&](int64_t row) {
            float walks[L];
            F<L>::store(walks, walking_lanes<L>(lanes64<L>(block.scale64, row, block.per_lane)));
            return over_attraction<L>(block, row, D<L>::widen(walks));
        });
    for (int lane = 0; lane < L; ++lane)
        loss[lane] = ppr_pass_loss(block.longest_row[lane], scale[lane], inverse[lane] > 1.0 ? inverse[lane] : 1.0);
}

// What is above the numbers that float32 rounds; 0 in lanes where nothing walks.
template <int L>
HF_INLINE F<L> round_up(D<L> exact, F<L> walks) {
    double values[L];
    float rounded[L];
    D<L>::store(values, exact);
    for (int lane = 0; lane < L; ++lane) rounded[lane] = static_cast<float>(values[lane]);
    const F<L> least = F<L>::all(static_cast<float>(PPR_LEAST));
    return F<L>::mul(F<L>::add(F<L>::mul(F<L>::load(rounded), F<L>::all(PPR_UP)), least), walks);
}

// |rho|, rounded up, from what certify left in block.correction: ppr_rho_above.
template <int L>
LocalBounds<L> begin_local(const PprBlock<L>& block) {
    LocalBounds<L> bounds;
    bounds.local = bounds.average = block.current;
    const D<L> twice_slack = D<L>::mul(D<L>::all(2.0), D<L>::load(block.slack));
    const D<L> unit = D<L>::all(1.0 + 1.1920928955078125e-7), least = D<L>::all(PPR_LEAST);
    parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
        const D<L> scale = lanes64<L>(block.scale64, row, block.per_lane);
        const D<L> rho = D<L>::mul(D<L>::abs(D<L>::widen(block.correction + row * L)), unit);
        const D<L> x = D<L>::mul(D<L>::mul(twice_slack, D<L>::abs(D<L>::widen(block.result + row * L))), scale);
        const D<L> own = D<L>::add(D<L>::add(rho, x), least);
        F<L>::store(bounds.local + row * L, round_up<L>(own, walking_lanes<L>(scale)));
    });
    pass_losses<L>(block, bounds.loss);
    return bounds;
}

// P times a state, by a pass without restarts and damping.
template <int L>
void average_of_neighbours(PprBlock<L> block, float* from, float* to, uint64_t* no_row) {
    float all[L], none[L] = {};
    for (float& share : all) share = 1.0f;
    std::memset(no_row, 0, size_t(block.num_tiles) * sizeof(uint64_t));
    block.words = no_row;
    block.current = from, block.next = to;
    block.chebyshev = false, block.has_lone_seed = false;
    block.pass = 3;  // no row is known to be 0
    ppr_pass<L>(block, PassOptions{all, none, false, nullptr});
}

// Adds to each node's own part what the average of its neighbours gives: ppr_local_above.
template <int L>
void take_in_neighbours(const PprBlock<L>& block, const LocalBounds<L>& bounds) {
    double shares[L], leasts[L];
    for (int lane = 0; lane < L; ++lane)
        shares[lane] = 1.0 + bounds.loss[lane].share, leasts[lane] = bounds.loss[lane].least;
    const D<L> share = D<L>::load(shares), least = D<L>::load(leasts), damping = D<L>::load(block.damping);
    const D<L> unit = D<L>::all(1.0 + 4.0 * PPR_UNIT);
    parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
        float* const local = bounds.local + row * L;
        const F<L> walks = walking_lanes<L>(lanes64<L>(block.scale64, row, block.per_lane));
        const D<L> average = D<L>::widen(bounds.average + row * L);
        const D<L> own_least =
            block.attraction == nullptr ? least : D<L>::mul(least, D<L>::widen(block.attraction + row * L));
        const D<L> near = D<L>::mul(damping, D<L>::mul(D<L>::add(D<L>::mul(average, share), own_least), unit));
        const D<L> own = D<L>::mul(D<L>::add(D<L>::widen(local), near), unit);
        F<L>::store(local, round_up<L>(own, walks));  // where nothing walks it is 0 before and after
    });
}

// Looks one step further. False: no memory.
template <int L>
bool step_local(const PprBlock<L>& block, LocalBounds<L>& bounds) {
    if (bounds.steps > 0) take_in_neighbours<L>(block, bounds);
    const size_t state = size_t(block.graph.num_nodes) * L;
    float* to = bounds.steps == 0 ? block.next : block.work.template reserve<float>(slot_remainder, state);
    uint64_t* no_row = block.work.template reserve<uint64_t>(slot_every_row, size_t(block.num_tiles) + 1);
    if (to == nullptr || no_row == nullptr) return false;
    average_of_neighbours<L>(block, bounds.average, to, no_row);
    bounds.average = to;
    bounds.steps += 1;
    double largest[L];
    largest_of_rows<L>(block, largest,
                       [&](int64_t row) { return over_attraction<L>(block, row, D<L>::widen(to + row * L)); });
    for (int lane = 0; lane < L; ++lane)
        bounds.beyond[lane] = ppr_beyond(largest[lane], bounds.steps, bounds.loss[lane], block.damping[lane]);
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
