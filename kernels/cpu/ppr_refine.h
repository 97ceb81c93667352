// One step of iterative refinement, for lists whose order float32 cannot prove: hopfuse/ppr.h, REFINEMENT. Included once
// per instruction set.
#pragma once

#include "hopfuse/ppr_plan.h"
#include "ppr_certify.h"
#include "ppr_pass.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// y with y = d D^-1 P' D y + b nearly, b = block.correction in every row, by as many passes as each open lane's damping
// asks for; block.current and block.next are used up.
template <int L>
void solve_correction(PprBlock<L> block, const bool* open, uint64_t* every_row, int32_t* rank, float*& solved) {
    float damping[L], omega[L];
    double omega64[L];
    int64_t passes[L], left = 0;
    bool active[L];
    for (int lane = 0; lane < L; ++lane) {
        const double d = block.damping[lane];
        damping[lane] = static_cast<float>(d);
        omega64[lane] = 1.0 / (1.0 - 0.5 * d * d);
        active[lane] = open[lane];
        passes[lane] = ppr_refining_passes(d);
        left += active[lane] ? 1 : 0;
    }
    for (int64_t word = 0; word < block.num_tiles; ++word) {
        every_row[word] = ~uint64_t{0};
        rank[word] = static_cast<int32_t>(word * 64);
    }
    block.words = every_row, block.rank = rank;
    block.restart32 = block.correction;
    block.result = solved;
    for (int64_t pass = 1; left > 0; ++pass) {
        block.pass = pass + 2;  // no row is known to be 0
        bool stop[L];
        for (int lane = 0; lane < L; ++lane) {
            omega[lane] = static_cast<float>(omega64[lane]);
            stop[lane] = active[lane] && pass == passes[lane];
        }
        ppr_pass<L>(block, PassOptions{damping, omega, false, nullptr});
        capture<L>(block, stop, active, block.next);
        for (int lane = 0; lane < L; ++lane) {
            const double d = block.damping[lane];
            left -= stop[lane] ? 1 : 0;
            active[lane] = active[lane] && !stop[lane];
            omega64[lane] = 1.0 / (1.0 - 0.25 * d * d * omega64[lane]);
        }
        float* swap = block.current;
        block.current = block.next, block.next = swap;
    }
    solved = block.result;
}

// Whether a lane's list, not proven by its certificate, is worth a refinement: its bound per node holds, and the passes
// are allowed.
template <int L>
bool may_refine(const PprBlock<L>& block, int lane, int64_t passes, double per_degree) {
    const int64_t most = block.queries.max_iter;
    return is_finite(per_degree) && (most == 0 || passes + ppr_refining_passes(block.damping[lane]) + 1 <= most);
}

// Open lanes of `result` become fl(x^ + e), e the correction that their residual, in block.correction, asks for; their
// certificate is that of x^ + e, and its rounding. The other lanes stay. False: no memory.
template <int L>
bool refine(PprBlock<L>& block, const bool* open, const double* lost, PprCertificate<L>& certificate) {
    const int64_t nodes = block.graph.num_nodes;
    float* solved = block.work.template reserve<float>(slot_remainder, size_t(nodes) * L);
    uint64_t* every_row = block.work.template reserve<uint64_t>(slot_every_row, size_t(block.num_tiles) + 1);
    int32_t* rank = block.work.template reserve<int32_t>(slot_every_rank, size_t(block.num_tiles) + 1);
    if (!solved || !every_row || !rank) return false;
    float keep[L];
    for (int lane = 0; lane < L; ++lane) keep[lane] = open[lane] ? 1.0f : 0.0f;
    parallel_for(nodes, block.queries.threads, [&](int64_t row, int) {
        const F<L> start = F<L>::mul(F<L>::load(block.correction + row * L), F<L>::load(keep));
        F<L>::store(block.correction + row * L, start);
        F<L>::store(block.current + row * L, start);
        F<L>::store(block.next + row * L, F<L>::zero());
    });
    solve_correction<L>(block, open, every_row, rank, solved);
    const auto round_sums = [&](int64_t tile, LaneSums<L>& sums) {
        for (int64_t row = block.tile_begin(tile); row < block.tile_end(tile); ++row) {
            float *const x = block.result + row * L, *const rest = solved + row * L;
            double sum[L];
            D<L>::store(sum, D<L>::fma(D<L>::widen(rest), node_weight64<L>(block, row), D<L>::widen(x)));
            for (int lane = 0; lane < L; ++lane) {
                if (!open[lane]) sum[lane] = static_cast<double>(x[lane]);
                x[lane] = static_cast<float>(sum[lane]);
                rest[lane] = static_cast<float>(sum[lane] - static_cast<double>(x[lane]));
            }
            sums.add(D<L>::abs(D<L>::widen(rest)));
        }
    };
    double lacking[L];
    sum_tiles(block.num_tiles, 8, block.queries.threads, block.sums, round_sums).value(lacking);
    block.remainder = solved;
    block.correction = nullptr;
    const PprCertificate<L> refined = certify<L>(block, lost, nullptr);
    block.remainder = nullptr;
    for (int lane = 0; lane < L; ++lane) {
        if (!open[lane]) continue;
        const double rounding = ppr_rounding(lacking[lane], block.missed[lane]), d = block.damping[lane];
        certificate.residual[lane] = refined.residual[lane] + (1.0 + d) * rounding;
        certificate.bound[lane] = refined.bound[lane] + rounding;
        certificate.per_degree[lane] = refined.per_degree[lane];
    }
    return true;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
