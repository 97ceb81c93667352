// Error bounds of single nodes from their neighbours: hopfuse/ppr.h, LOCAL BOUNDS. Included once per instruction set.
#pragma once

#include <algorithm>

#include "hopfuse/ppr_certificate.h"
#include "ppr_block.h"
#include "ppr_pass.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Bounds of rho: |rho_v| <= local_v PPR_NEAR + rest; and those of each node's error that follow from averages of it, at most
// (local_v PPR_NEAR + bound) deg_v, for lanes whose bound per node holds.
template <int L>
struct LocalBounds {
    float* local = nullptr;  // (N, L) times the node weight
    double rest[L] = {};
    PassLoss loss[L];
    double bound[L];
};

// The maximum of `of` over the block's rows, per lane.
template <int L, class Of>
void largest_of_rows(const PprBlock<L>& block, double* largest, const Of& of) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row)
            sums.largest = D<L>::max(sums.largest, of(row));
    };
    D<L>::store(largest, sum_tiles(block.num_tiles, 8, block.queries.execution, block.sums, take).largest);
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

// Each lane's rest of |rho| of x^, beside |fl(r / deg)|.
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

// Adds what other nodes contribute to the bounds: the maximum of P local, by a pass without restarts and damping. False: no
// memory.
template <int L>
bool look_around(PprBlock<L> block, LocalBounds<L>& bounds) {
    block.words = block.work.template reserve<uint64_t>(slot_every_row, size_t(block.num_tiles) + 1);
    if (block.words == nullptr) return false;
    std::memset(block.words, 0, size_t(block.num_tiles) * sizeof(uint64_t));
    float all[L], none[L] = {};
    for (float& share : all) share = 1.0f;
    block.current = bounds.local;
    block.chebyshev = false, block.has_lone_seed = false;
    block.pass = 3;  // a pass in which no row is known to be 0
    const LaneSums<L> sums = ppr_pass<L>(block, PassOptions{all, none, true, nullptr, PassResult::average});
    double largest[L];
    D<L>::store(largest, sums.largest);
    for (int lane = 0; lane < L; ++lane)
        bounds.bound[lane] = ppr_local_bound(largest[lane], bounds.rest[lane], bounds.loss[lane], block.damping[lane]);
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
