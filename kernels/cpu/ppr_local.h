// Error bounds of single nodes from their neighbours one step away, then two: hopfuse/ppr.h, LOCAL BOUNDS. Included once per
// instruction set.
#pragma once

#include <algorithm>

#include "hopfuse/ppr_certificate.h"
#include "ppr_block.h"
#include "ppr_pass.h"
#include "ppr_topk.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Bounds of rho: |rho_v| <= near_v PPR_NEAR + rest; and the bounds of each node's error that follow from averages of it, at
// most (local_v PPR_NEAR + beyond) deg_v plus the node's own rest, for lanes whose bound per node holds. Reuses the buffers
// of a finished walk.
template <int L>
struct LocalBounds {
    float* local = nullptr;    // (N, L) starts as near; times the node weight; later steps only change candidates
    float* average = nullptr;  // (N, L) P^steps near, times the node weight
    double rest[L] = {};
    PassLoss loss[L];
    double beyond[L];
    int steps = 0;
};

// The maximum of `of` over the block's rows, per lane.
template <int L, class Of>
void largest_of_rows(const PprBlock<L>& block, double* largest, const Of& of) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            sums.largest = D<L>::max(sums.largest, of(row));
    };
    D<L>::store(largest, sum_tiles(block.num_tiles, 8, block.queries.threads, block.sums, take).largest);
}

// 1 in lanes where a walk continues, else 0.
template <int L>
HF_INLINE F<L> walking_lanes(D<L> scales) {
    double scale[L];
    float walks[L];
    D<L>::store(scale, scales);
    for (int lane = 0; lane < L; ++lane) walks[lane] = scale[lane] > 0.0 ? 1.0f : 0.0f;
    return F<L>::load(walks);
}

// The rounding error of a float32 pass over each lane's averages.
template <int L>
void pass_losses(const PprBlock<L>& block, PassLoss* loss) {
    double scale[L], inverse[L] = {};
    if (block.per_lane)
        largest_of_rows<L>(block, scale, [&](int64_t row) { return D<L>::load(block.scale64 + row * L); });
    else std::fill_n(scale, L, *std::max_element(block.scale64, block.scale64 + block.graph.num_nodes));
    if (block.attraction != nullptr)
        largest_of_rows<L>(block, inverse, [&](int64_t row) {
            float walks[L];
            F<L>::store(walks, walking_lanes<L>(lanes64<L>(block.scale64, row, block.per_lane)));
            return over_attraction<L>(block, row, D<L>::widen(walks));
        });
    for (int lane = 0; lane < L; ++lane)
        loss[lane] = ppr_pass_loss(block.longest_row[lane], scale[lane], inverse[lane] > 1.0 ? inverse[lane] : 1.0);
}

// Each lane's rest of |rho| if `near` is |fl(r / deg)| of x^.
template <int L>
void rests_of_rho(const PprBlock<L>& block, const double* per_degree, const PassLoss* loss, double* rest) {
    F<L> most = F<L>::zero();
    const float* restart32 = block.restart32;
    for (int64_t word = 0; word < block.num_tiles; ++word)
        for (uint64_t rows = block.words[word]; rows != 0; rows &= rows - 1, restart32 += L) {
            const int64_t row = word * 64 + __builtin_ctzll(rows);
            most = F<L>::max(most, over_attraction<L>(block, row, F<L>::load(restart32)));
        }
    float restart[L];
    F<L>::store(restart, most);
    for (int lane = 0; lane < L; ++lane)
        rest[lane] =
            ppr_rest_of_rho(restart[lane], per_degree[lane], block.slack[lane], loss[lane], block.damping[lane]);
}

// Starts from block.correction, which certify filled in.
template <int L>
LocalBounds<L> begin_local(const PprBlock<L>& block, const double* per_degree) {
    LocalBounds<L> bounds;
    bounds.local = bounds.average = block.current;
    parallel_for(block.graph.num_nodes, block.queries.threads, [&](int64_t row, int) {
        F<L>::store(bounds.local + row * L, F<L>::abs(F<L>::load(block.correction + row * L)));
    });
    pass_losses<L>(block, bounds.loss);
    rests_of_rho<L>(block, per_degree, bounds.loss, bounds.rest);
    return bounds;
}

// Computes P times a state by a pass without restarts and damping, and the maximum of the result.
template <int L>
void average_of_neighbours(PprBlock<L> block, float* from, float* to, uint64_t* no_row, double* largest) {
    float all[L], none[L] = {};
    for (float& share : all) share = 1.0f;
    std::memset(no_row, 0, size_t(block.num_tiles) * sizeof(uint64_t));
    block.words = no_row;
    block.current = from, block.next = to;
    block.chebyshev = false, block.has_lone_seed = false;
    block.pass = 3;  // a pass in which no row is known to be 0
    const LaneSums<L> sums = ppr_pass<L>(block, PassOptions{all, none, true, nullptr, PassResult::average});
    D<L>::store(largest, sums.largest);
}

// Adds the average of each candidate's neighbours to its own part: ppr_local_above.
template <int L>
void take_in_neighbours(const PprBlock<L>& block, const PprTopk& top, const LocalBounds<L>& bounds) {
    double shares[L], leasts[L];
    for (int lane = 0; lane < L; ++lane)
        shares[lane] = 1.0 + bounds.loss[lane].share, leasts[lane] = bounds.loss[lane].least;
    const D<L> share = D<L>::load(shares), least = D<L>::load(leasts), damping = D<L>::load(block.damping);
    const D<L> unit = D<L>::all(1.0 + 4.0 * PPR_UNIT);
    const F<L> up = F<L>::all(PPR_UP), least32 = F<L>::all(static_cast<float>(PPR_LEAST));
    parallel_for(candidate_count(block.graph, top), block.queries.threads, [&](int64_t i, int) {
        const int64_t row = candidate_row(block.graph, top, i);
        float* const local = bounds.local + row * L;
        const D<L> average = D<L>::widen(bounds.average + row * L);
        const D<L> own_least =
            block.attraction == nullptr ? least : D<L>::mul(least, D<L>::widen(attraction_row<L>(block, row)));
        const D<L> near = D<L>::mul(damping, D<L>::mul(D<L>::add(D<L>::mul(average, share), own_least), unit));
        float own[L];
        D<L>::narrow(own, D<L>::mul(D<L>::add(D<L>::widen(local), near), unit));
        F<L>::store(local, F<L>::add(F<L>::mul(F<L>::load(own), up), least32));
    });
}

// Extends the bounds by one step, with `average` of each node, then `next`. False: no memory.
template <int L>
bool step_local(const PprBlock<L>& block, const PprTopk& top, LocalBounds<L>& bounds, float* to) {
    if (bounds.steps > 0) take_in_neighbours<L>(block, top, bounds);
    uint64_t* no_row = block.work.template reserve<uint64_t>(slot_every_row, size_t(block.num_tiles) + 1);
    if (to == nullptr || no_row == nullptr) return false;
    double largest[L];
    average_of_neighbours<L>(block, bounds.average, to, no_row, largest);
    bounds.average = to;
    bounds.steps += 1;
    for (int lane = 0; lane < L; ++lane)
        bounds.beyond[lane] =
            ppr_local_bound(largest[lane], bounds.rest[lane], bounds.steps, bounds.loss[lane], block.damping[lane]);
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
