// The solver for a block of L lanes. Each file ppr_lanes_*.cpp compiles it for some widths, so that a build has several files
// to share among its processes: all widths together take a compiler a minute or two. Included once per instruction set.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "ppr_answers.h"
#include "ppr_certify.h"
#include "ppr_pass.h"
#include "ppr_settle.h"
#include "ppr_setup.h"
#include "ppr_solve.h"
#include "ppr_topk.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Stops lanes whose hits seem proven by the float32 residual (the certificate decides), and sets the pass at which the others
// are tried again, estimated from the error reduction that is still needed and the lane's own rate.
template <int L>
bool try_proof(const PprBlock<L>& block, const PprTopk& top, int64_t pass, const Lanes<L>& tried, const double* largest,
               RankedLists<L>& lists, Lanes<L>& stop, int64_t* next_try) {
    NodeError error[L];
    double shortfall[L];
    for (int lane = 0; lane < L; ++lane)
        error[lane] = forecast_error(static_cast<float>(largest[lane]), block.damping[lane]);
    const Ranking<L> ranking{block.current, false};
    Ranked* const selected = lists.selected.data();
    if (!select_best<L>(block, top, ranking, tried.has, top.k + 1, selected, lists.found)) return false;
    measure_proof<L>(block, top, ranking, tried.has, error, nullptr, selected, lists.found, shortfall);
    tried.each([&](int lane) {
        const double decay = ppr_error_decay(block.accelerates[lane], block.damping[lane]);
        stop[lane] = shortfall[lane] < 1.0;
        if (!stop[lane]) next_try[lane] = next_proof(pass, shortfall[lane], decay);
    });
    return true;
}

// Runs passes until every lane's iterate is in `result`.
template <int L>
bool walk(PprBlock<L>& block, Stage stage, const PprTopk* top, RankedLists<L>& lists, int64_t* passes,
          Lanes<L>& by_proof) {
    const PprQueries& q = block.queries;
    float damping[L], omega[L], theta[L], shrink[L];
    double omega64[L], anchor[L];
    int64_t limit[L], measured_from[L], next_try[L];
    Lanes<L> active;
    Kept<L> kept;
    for (int lane = 0; lane < L; ++lane) {
        active[lane] = block.query[lane] >= 0;
        passes[lane] = 0;
        next_try[lane] = PPR_NEVER;
        const double d = block.damping[lane];
        damping[lane] = static_cast<float>(d);
        omega64[lane] = first_omega<L>(block, lane);
        theta[lane] = ppr_theta(d, q.tol);
        shrink[lane] = ppr_shrink(block.accelerates[lane], d);
        anchor[lane] = ppr_residual_anchor(theta[lane], shrink[lane]);
        limit[lane] = measured_from[lane] = 1;
        if (!active[lane]) continue;
        limit[lane] = pass_limit<L>(block, lane);
        if (q.max_iter > 0 && q.max_iter < limit[lane]) limit[lane] = q.max_iter;
        if (stage == stage_proven && block.keeps[lane]) next_try[lane] = first_proof(limit[lane]);
        measured_from[lane] = ppr_measured_from(limit[lane]);
    }
    const auto end = [&](const Lanes<L>& lanes) {
        lanes.each([&](int lane) { active[lane] = false, passes[lane] = block.pass; });
    };
    for (block.pass = 1; active.any(); ++block.pass) {
        const int64_t pass = block.pass;
        bool sums_residual = false, measures = false;  // if some lane needs it
        for (int lane = 0; lane < L; ++lane) {
            omega[lane] = active[lane] ? static_cast<float>(omega64[lane]) : 0.0f;  // 0: see Kept
            sums_residual = sums_residual || (active[lane] && pass >= measured_from[lane]);
            measures = measures || sums_residual || (active[lane] && pass >= next_try[lane]);
        }
        const PassOptions options{damping, omega, measures, sums_residual ? anchor : nullptr};
        const LaneSums<L> sums = ppr_pass<L>(block, options);
        double residual[L], largest[L];
        D<L>::store(residual, sums.sum), D<L>::store(largest, sums.largest);
        Lanes<L> stop;
        active.each([&](int lane) {
            const float forecast = static_cast<float>(residual[lane]) * shrink[lane];
            const bool small = pass >= measured_from[lane] && forecast <= theta[lane];
            stop[lane] = small || pass >= limit[lane];
        });
        if (stage == stage_proven) {
            Lanes<L> tried, proven;
            active.each([&](int lane) { tried[lane] = !stop[lane] && pass >= next_try[lane]; });
            if (tried.any() && !try_proof<L>(block, *top, pass, tried, largest, lists, proven, next_try)) return false;
            kept.keep(block, proven, active, block.current);  // the proof is about the iterate that was measured
            proven.each([&](int lane) { by_proof[lane] = true; });
            end(proven);
        }
        kept.keep(block, stop, active, block.next);
        end(stop);
        for (int lane = 0; lane < L; ++lane) omega64[lane] = next_omega<L>(block, lane, omega64[lane]);
        float* swap = block.current;
        block.current = block.next, block.next = swap;
    }
    kept.join(block);
    return true;
}

template <int L>
Status solve(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work,
             const int64_t* query, int count, Stage* stage) {
    PprBlock<L> block(graph, queries, work);
    block.take(query, count);
    if (!setup_block<L>(block)) return Status::out_of_memory;
    const Stage now = stage[query[0]];
    int64_t passes[L];
    double lost[L];
    Lanes<L> by_proof;
    RankedLists<L> lists(out.top);
    if (!walk<L>(block, now, out.top, lists, passes, by_proof)) return Status::out_of_memory;
    normalise<L>(block, by_proof.has, lost);
    const bool proves = out.top != nullptr && out.top->stop_when_proven && out.top->k > 0;
    if (proves && block.chebyshev) {
        block.correction = work.reserve<float>(slot_correction, size_t(graph.num_nodes) * L);
        if (block.correction == nullptr) return Status::out_of_memory;
    }
    PprCertificate<L> certificate = certify<L>(block, lost, nullptr);
    Lanes<L> open;
    for (int lane = 0; lane < L; ++lane) {
        const bool exhausted = queries.max_iter > 0 && passes[lane] >= queries.max_iter;
        open[lane] = lane < count && !by_proof[lane] && !exhausted && certificate.bound[lane] > queries.tol;
        passes[lane] += 1;
    }
    polish<L>(block, open, lost, certificate, passes);

    Certified<L> c{block, out, stage, certificate, std::move(lists), {}};
    Lanes<L> used, finished;
    for (int lane = 0; lane < L; ++lane) {
        used[lane] = lane < count;
        c.course[lane] = {{passes[lane], 0}, now == stage_proven && by_proof[lane]};
        c.lists.error[lane] = ppr_final_error(certificate.bound[lane], certificate.per_degree[lane]);
    }
    if (out.top != nullptr && !c.lists.rank(block, *out.top, used.has)) return Status::out_of_memory;
    for (int lane = 0; lane < L; ++lane) {
        const bool is_bounded = certificate.per_degree[lane] < PPR_MOST_RHO && !block.row_factor_underflows[lane];
        open[lane] = used[lane] && proves && !c.lists.is_proven(lane) && is_bounded && c.plan_look(lane);
        finished[lane] = used[lane] && !open[lane];
    }
    c.finish(finished);
    return settle<L>(c, open, true);
}

template <int L>
Status solve_block(const PprGraph& graph, const PprQueries& queries, const Outputs& out, Workspace& work,
                   const int64_t* query, int count, Stage* stage) {
    PprQueries own = queries;
    own.execution.threads = ppr_threads(graph.num_nodes, graph.num_stored, L, queries.execution.threads);
    return solve<L>(graph, own, out, work, query, count, stage);
}

// What is compiled once for each width.
#define HOPFUSE_LANES(prefix, L)                                                                            \
    prefix template Status solve_block<L>(const PprGraph&, const PprQueries&, const Outputs&, Workspace&,   \
                                          const int64_t*, int, Stage*);                                     \
    prefix template Status settle_moved<L>(const PprGraph&, PprQueries, const Outputs&, Workspace&, Stage*, \
                                           const Moved*, int, float*, float*);
HOPFUSE_LANES(extern, 1)
HOPFUSE_LANES(extern, 4)
HOPFUSE_LANES(extern, 8)
HOPFUSE_LANES(extern, 16)
HOPFUSE_LANES(extern, 32)

}  // namespace hopfuse::HOPFUSE_ISA_NS
