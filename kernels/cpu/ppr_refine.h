// One step of iterative refinement, for lists whose order float32 cannot prove: hopfuse/ppr.h, REFINEMENT. Included once
// per instruction set.
#pragma once

#include "hopfuse/ppr_plan.h"
#include "ppr_certify.h"
#include "ppr_local.h"
#include "ppr_pass.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A walk that restarts from fl(r / deg) in every row.
template <int L>
struct CorrectionWalk {
    double start_error[L];
    PassLoss loss[L];
    double residual[L], largest[L];  // what a lane's last pass measured of the iterate that it read
};

// The walk's start, 0 in lanes that are not open, and how far it may be from r / deg.
template <int L>
void begin_correction(const PprBlock<L>& block, const bool* open, CorrectionWalk<L>& walk) {
    float opens[L];
    for (int lane = 0; lane < L; ++lane) opens[lane] = open[lane] ? 1.0f : 0.0f;
    const F<L> keep = F<L>::load(opens);
    const D<L> twice_slack = D<L>::mul(D<L>::all(2.0), D<L>::load(block.slack));
    const D<L> unit = D<L>::all(2.0 * PPR_UNIT32), least = D<L>::all(PPR_LEAST);
    largest_of_rows<L>(block, walk.start_error, [&](int64_t row) {
        const D<L> scale = lanes64<L>(block.scale64, row, block.per_lane);
        const F<L> b = F<L>::mul(F<L>::load(block.correction + row * L), keep);
        F<L>::store(block.current + row * L, b);
        F<L>::store(block.next + row * L, F<L>::zero());
        float walks[L];
        F<L>::store(walks, walking_lanes<L>(scale));
        const D<L> own = D<L>::mul(unit, D<L>::abs(D<L>::widen(block.current + row * L)));  // ppr_start_error
        const D<L> x = D<L>::mul(D<L>::mul(twice_slack, D<L>::abs(D<L>::widen(block.result + row * L))), scale);
        return over_attraction<L>(block, row, D<L>::mul(D<L>::add(D<L>::add(own, x), least), D<L>::widen(walks)));
    });
    pass_losses<L>(block, walk.loss);
}

// y with y = d D^-1 P' D y + b nearly, b = block.correction in every row: captured in `solved` after as many passes as each
// open lane's look asks for, and measured by one more. The three buffers may change places.
template <int L>
bool solve_correction(PprBlock<L>& shared, const bool* open, const int64_t* look, CorrectionWalk<L>& walk,
                      float*& solved) {
    PprBlock<L> block = shared;
    const size_t words = size_t(block.num_tiles) + 1;
    block.words = block.work.template reserve<uint64_t>(slot_every_row, words);
    block.rank = block.work.template reserve<int32_t>(slot_every_rank, words);
    if (!block.words || !block.rank) return false;
    for (int64_t word = 0; word < block.num_tiles; ++word) {
        block.words[word] = ~uint64_t{0};
        block.rank[word] = static_cast<int32_t>(word * 64);
    }
    begin_correction<L>(block, open, walk);
    float damping[L], omega[L];
    double omega64[L], anchor[L];
    int64_t left = 0;
    bool active[L];
    for (int lane = 0; lane < L; ++lane) {
        const double d = block.damping[lane];
        damping[lane] = static_cast<float>(d);
        anchor[lane] = PPR_ANCHOR;
        omega64[lane] = first_omega<L>(block, lane);
        active[lane] = open[lane];
        left += active[lane] ? 1 : 0;
    }
    block.restart32 = block.correction, block.has_lone_seed = false;
    block.result = solved;
    for (int64_t pass = 1; left > 0; ++pass) {
        block.pass = pass + 2;  // no row is known to be 0
        bool stop[L], measure = false;
        for (int lane = 0; lane < L; ++lane) {
            omega[lane] = static_cast<float>(omega64[lane]);
            stop[lane] = active[lane] && pass == look[lane] + 1;
            measure = measure || stop[lane];
        }
        const LaneSums<L> sums = ppr_pass<L>(block, PassOptions{damping, omega, measure, measure ? anchor : nullptr});
        double residual[L], largest[L];
        sums.value(residual);
        D<L>::store(largest, sums.largest);
        for (int lane = 0; lane < L; ++lane)
            if (stop[lane]) walk.residual[lane] = residual[lane], walk.largest[lane] = largest[lane];
        capture<L>(block, stop, active, block.current);  // what was measured is the iterate that the pass read
        for (int lane = 0; lane < L; ++lane) {
            left -= stop[lane] ? 1 : 0;
            active[lane] = active[lane] && !stop[lane];
            omega64[lane] = next_omega<L>(block, lane, omega64[lane]);
        }
        float* swap = block.current;
        block.current = block.next, block.next = swap;
    }
    solved = block.result;
    shared.current = block.current, shared.next = block.next;
    return true;
}

// ||D y||_1, and the largest |y| over its node weight.
template <int L>
void measure_correction(const PprBlock<L>& block, const float* solved, double* moved, double* largest) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row) {
            const D<L> y = D<L>::abs(D<L>::widen(solved + row * L));
            sums.add(D<L>::mul(y, node_weight64<L>(block, row)));
            sums.largest = D<L>::max(sums.largest, over_attraction<L>(block, row, y));
        }
    };
    const LaneSums<L> all = sum_tiles(block.num_tiles, 8, block.queries.threads, block.sums, take);
    all.value(moved);
    D<L>::store(largest, all.largest);
}

// Makes `solved` fl(x^ + D y) in open lanes, x^ in the others. Leaves what rounding to float32 lacks.
template <int L>
void add_correction(const PprBlock<L>& block, const bool* open, float* solved, double* lacking) {
    const auto take = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row) {
            const float* const x = block.result + row * L;
            float* const y = solved + row * L;
            double sum[L];
            D<L>::store(sum, D<L>::fma(D<L>::widen(y), node_weight64<L>(block, row), D<L>::widen(x)));
            for (int lane = 0; lane < L; ++lane) y[lane] = open[lane] ? static_cast<float>(sum[lane]) : x[lane];
            sums.add(D<L>::abs(D<L>::sub(D<L>::load(sum), D<L>::widen(y))));
        }
    };
    sum_tiles(block.num_tiles, 8, block.queries.threads, block.sums, take).value(lacking);
}

// Open lanes of `refined` become fl(x^ + D y), y the correction that the residual of x^, in block.correction, asks for, after
// `look` passes of each lane; the others are x^. Their certificate becomes that of x^ + D y, with its rounding. False: no
// memory.
template <int L>
bool refine(PprBlock<L>& block, const bool* open, const int64_t* look, PprCertificate<L>& certificate,
            float*& refined) {
    CorrectionWalk<L> walk;
    if (!solve_correction<L>(block, open, look, walk, refined)) return false;
    double lacking[L], moved[L], largest[L];
    measure_correction<L>(block, refined, moved, largest);
    add_correction<L>(block, open, refined, lacking);
    for (int lane = 0; lane < L; ++lane) {
        if (!open[lane]) continue;
        const double slack = block.slack[lane], missed = block.missed[lane], d = block.damping[lane];
        const double rounding = ppr_rounding(lacking[lane], missed);
        const double residual = ppr_corrected_residual(walk.residual[lane], certificate.residual[lane],
                                                       moved[lane] + missed, block.volume[lane], walk.loss[lane]);
        const double rho =
            ppr_corrected_rho(walk.largest[lane], largest[lane], walk.start_error[lane], walk.loss[lane]);
        certificate.residual[lane] = residual + (1.0 + d) * rounding;
        certificate.bound[lane] = ppr_bound(residual, slack, missed, d) + rounding;
        certificate.per_degree[lane] = ppr_node_bound(true, rho, slack, d);
    }
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
