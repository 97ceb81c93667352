// The end of a measured pass: what its blocks found, joined, and which lanes end with it. Device code only.
#pragma once

#include "arguments/ppr_f32.h"
#include "grid_join.h"

namespace hopfuse {

// Decides after a measured pass whether a lane's walk ends with it. Called by one thread, with the lane's residual.
HOPFUSE_DEVICE void decide(const PprDecision& d, int64_t number, double sum, int lane) {
    if (d.walking[lane] == 0) return;
    const float residual = static_cast<float>(sum);
    const bool small = number >= d.measured_from[lane] && residual * d.shrink[lane] <= d.theta[lane];
    if (!small && number < d.limit[lane]) return;
    d.walking[lane] = 0;
    d.passes[lane] = number;
    if (atomicSub(d.left, 1) == 1) *d.last_pass = number;
}

// Joins what the threads of a measured pass have found, each in lane threadIdx.x % L, and ends lanes. Called by whole blocks.
template <int L>
HOPFUSE_DEVICE void end_measured(const PassArguments& a, const PprStep& step, Measured own, JoinShared* shared) {
    if (!join_grid<L>(own, a.join, shared) || threadIdx.x >= L) return;
    put_measured<L>(own, step.measured);
    if (step.ends != 0) decide(a.decision, step.number, own.sum, static_cast<int>(threadIdx.x));
}

}  // namespace hopfuse
