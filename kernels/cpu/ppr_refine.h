// One step of iterative refinement, for lists whose order float32 cannot prove: hopfuse/ppr.h, REFINEMENT. Included once
// per instruction set.
#pragma once

#include "hopfuse/ppr_settle.h"
#include "ppr_certify.h"
#include "ppr_local.h"
#include "ppr_pass.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Measurements of y, the correction that x^ has walked to.
template <int L>
struct Correction {
    double residual[L], largest_gap[L];  // the sum of deg |z - y|, and the largest |z - y|
    double moved[L], largest[L];         // ||D y||_1, and the largest |y|; largest over the node weight
    double lacking[L];                   // what rounding x^ + D y to float32 loses
};

// Solves y = d D^-1 P' D y + b approximately, where b is block.correction in every row, by as many passes as each open lane's
// look requires. The last one is measured and writes |z - y| to `next`. Returns y, which is in `solved` or, if each look is 1,
// is b; `solved`, current and next may be swapped. Null: no memory.
template <int L>
const float* solve_correction(PprBlock<L>& shared, const Lanes<L>& open, const int64_t* look, Correction<L>& found,
                              float*& solved) {
    PprBlock<L> block = shared;
    const size_t words = size_t(block.num_tiles) + 1;
    block.words = block.work.template reserve<uint64_t>(slot_every_row, words);
    block.rank = block.work.template reserve<int32_t>(slot_every_rank, words);
    if (!block.words || !block.rank) return nullptr;
    for (int64_t word = 0; word < block.num_tiles; ++word) {
        block.words[word] = ~uint64_t{0};
        block.rank[word] = static_cast<int32_t>(word * 64);
    }
    float damping[L], omega[L] = {};
    double omega64[L], anchor[L];
    Lanes<L> active, unmoved;
    Kept<L> kept;
    for (int lane = 0; lane < L; ++lane) {
        damping[lane] = static_cast<float>(block.damping[lane]);
        anchor[lane] = PPR_ANCHOR;
        omega64[lane] = 1.0;
        active[lane] = open[lane] && look[lane] > 1;
        unmoved[lane] = open[lane] && look[lane] == 1;
    }
    const bool moves = active.any();
    block.restart32 = block.correction, block.has_lone_seed = false, block.all_restart = true;
    block.result = solved;
    float* const other = block.current;
    block.current = block.correction;                   // the start is y = b; the iterate before it, 0, is never read
    if (moves) kept.keep(block, unmoved, open, other);  // where pass 2 writes b for lanes with omega = 0
    for (block.pass = 1; active.any(); ++block.pass) {
        Lanes<L> stop;
        for (int lane = 0; lane < L; ++lane) {
            omega[lane] = active[lane] ? static_cast<float>(omega64[lane]) : 0.0f;  // 0: see Kept
            stop[lane] = active[lane] && block.pass + 1 == look[lane];
        }
        ppr_pass<L>(block, PassOptions{damping, omega, false, nullptr});
        kept.keep(block, stop, active, block.next);
        for (int lane = 0; lane < L; ++lane) {
            active[lane] = active[lane] && !stop[lane];
            omega64[lane] = block.pass == 1 ? first_omega<L>(block, lane) : next_omega<L>(block, lane, omega64[lane]);
        }
        float* const swap = block.pass == 1 ? other : block.current;
        block.current = block.next, block.next = swap;
    }
    if (moves) {
        kept.join(block);
        solved = block.result;
        shared.current = block.current, shared.next = block.next;
        block.current = solved;
    }
    const LaneSums<L> sums = ppr_pass<L>(block, PassOptions{damping, omega, true, anchor, PassResult::gap});
    sums.value(found.residual);
    D<L>::store(found.largest_gap, sums.largest);
    return block.current;
}

// Sets `refined` to fl(x^ + D y), which may replace y, and measures y.
template <int L>
void add_correction(const PprBlock<L>& block, const float* solved, float* refined, Correction<L>& found) {
    const int threads = block.queries.execution.threads;
    LaneSums<L>*const lackings = block.sums, *const moves = block.sums + threads;
    for (int thread = 0; thread < threads; ++thread) lackings[thread] = moves[thread] = LaneSums<L>();
    parallel_for(block.num_tiles, 8, block.queries.execution, [&](int64_t tile, int thread) {
        LaneSums<L> lacking, moved;
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row) {
            float* const h = refined + row * L;
            const D<L> correction = D<L>::widen(solved + row * L), size = D<L>::abs(correction);
            const D<L> weight = node_weight64<L>(block, row);
            moved.add(D<L>::mul(size, weight));
            moved.largest = D<L>::max(moved.largest, over_attraction<L>(block, row, size));
            const D<L> sum = D<L>::fma(correction, weight, D<L>::widen(block.result + row * L));
            D<L>::narrow(h, sum);
            lacking.add(D<L>::abs(D<L>::sub(sum, D<L>::widen(h))));
        }
        lackings[thread].join(lacking), moves[thread].join(moved);
    });
    joined(lackings, threads).value(found.lacking);
    const LaneSums<L> moved = joined(moves, threads);
    moved.value(found.moved);
    D<L>::store(found.largest, moved.largest);
}

// Sets open lanes of `refined` to fl(x^ + D y), where y is the correction for the residual of x^ (in block.correction),
// after `look` passes of each lane. Their certificate becomes that of x^ + D y, including its rounding. Returns the bounds
// of their new rho, in `next`; `local` is null if there is no memory.
template <int L>
LocalBounds<L> refine(PprBlock<L>& block, const Lanes<L>& open, const int64_t* look, PprCertificate<L>& certificate,
                      float*& refined) {
    LocalBounds<L> bounds;
    Correction<L> found;
    const float* const solved = solve_correction<L>(block, open, look, found, refined);
    if (solved == nullptr) return bounds;
    add_correction<L>(block, solved, refined, found);
    pass_losses<L>(block, bounds.loss);
    double rest[L];
    rests_of_rho<L>(block, certificate.per_degree, bounds.loss, rest);
    open.each([&](int lane) {
        const PprCorrection correction = {found.residual[lane], found.largest_gap[lane], found.moved[lane],
                                          found.largest[lane], found.lacking[lane]};
        const PprBounds known = {certificate.residual[lane], certificate.bound[lane], certificate.per_degree[lane]};
        const PprRefined own = ppr_refined(known, rest[lane], correction, bounds.loss[lane], block.slack[lane],
                                           block.missed[lane], block.volume[lane], block.damping[lane]);
        bounds.rest[lane] = own.rest;
        certificate.residual[lane] = own.bounds.residual;
        certificate.bound[lane] = own.bounds.bound;
        certificate.per_degree[lane] = own.bounds.per_degree;
    });
    bounds.local = block.next;
    return bounds;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
