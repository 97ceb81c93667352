// Bounds from the float64 residual of a returned x^: hopfuse/ppr.h, STOP. Shared by host and device.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/ppr.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/ppr_sum.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int PPR_POLISH_STEPS = 32;      // the most power steps in float64
constexpr double PPR_POLISH_GAIN = 0.98;  // a step that leaves more of the bound than this is the last

constexpr double PPR_UNIT = 1.1102230246251565e-16;  // float64's unit roundoff

// The float64 rounding of r_v itself, relative to (d P'|x| + s + |x|)_v, which is at most 2 |x_v| + |r_v|: an entry carries
// at most `longest_row` roundings of its row's sum and as many of its source's degree, `types` of the degree's sum over
// types, and restarts at most 4 levels of the blocked tree, 37 each; 256 covers these and the few products of a row.
// `longest_row`: the most entries that count in a row, or out of a node.
HOPFUSE_FN double ppr_slack(int64_t longest_row, int64_t types) {
    return 2.0 * PPR_UNIT * static_cast<double>(longest_row + types + 128);
}

// ||x^ - x*||_1 <= bound, from ||r||_1 and what sums over nodes may have missed of it (ppr_sum.h). The quantity that slack is
// relative to sums to at most 3 (1 + ||r||_1 / (1 - d)), since x* sums to 1.
HOPFUSE_FN double ppr_bound(double residual, double slack, double missed, double damping) {
    const double whole = residual + missed;
    const double rounded = 3.0 * slack * (1.0 + whole / (1.0 - damping));
    return (whole + rounded) / (1.0 - damping) * (1.0 + 4.0 * PPR_UNIT);
}

// |x^_v - x*_v| <= deg_v times this, from the largest (2 slack |x_u| + |r_u|) / deg_u. `holds`: the operator is symmetric
// and no mass is lost; otherwise the result is infinity.
HOPFUSE_FN double ppr_node_bound(bool holds, double largest, double slack, double damping) {
    return holds ? largest * (1.0 + 2.0 * slack) / (1.0 - damping) * (1.0 + 4.0 * PPR_UNIT) : infinite64();
}

constexpr double PPR_LEAST = 1.401298464324817e-45;  // the smallest float32 above 0
constexpr double PPR_ROUNDED =
    5.9604644775390625e-8 * (1.0 + 1e-6);  // |fl(x) - x| <= PPR_ROUNDED |fl(x)| + PPR_LEAST in float32

// What rounding x^ plus its correction to float32 adds to ||x - x*||_1, from the sum of the rounding errors, which are
// float32 numbers, and what that sum may have missed.
HOPFUSE_FN double ppr_rounding(double lacking, double missed) { return (lacking + missed) * (1.0 + 1e-6) + 1e-30; }

// The error of a node of a refined x^, from the bound per node before rounding.
HOPFUSE_FN NodeError ppr_refined_error(double per_degree) { return NodeError{per_degree, PPR_LEAST, PPR_ROUNDED}; }

// The error of a node of x^: by its degree or, if that bound does not hold, the L1 bound of all nodes.
HOPFUSE_FN NodeError ppr_final_error(double bound, double per_degree) {
    return is_finite(per_degree) ? NodeError{per_degree, 0.0, 0.0} : NodeError{0.0, bound, 0.0};
}

// ---- Local bounds: hopfuse/ppr.h, LOCAL BOUNDS -----------------------------------------------------------------------

constexpr double PPR_MOST_RHO = 1e38;  // with a bound per node below this, |rho| does not overflow float32

// Whether a list whose errors must shrink by this factor may be proven by local bounds.
HOPFUSE_FN bool ppr_may_look_around(double shortfall) { return shortfall < 8.0; }

constexpr double PPR_UNIT32 = 5.9604644775390625e-8;  // float32's unit roundoff

// |rho_v| <= near_v PPR_NEAR + rest, with near_v = |z_v - y_v|, or fl(|r_v| / deg_v).
constexpr double PPR_NEAR = 1.0 + 16.0 * PPR_UNIT32;

// What a float32 pass over numbers >= 0 may lose of an average: a share of it, and `least` by underflow.
struct PassLoss {
    double share, least;
};

// The roundings on a row's chain: those of a segment, of the sum of its segments, of weights and of the degree. At most n
// products underflow, by half of float32's smallest number each. `largest_scale` is the largest 1 / D, `largest_inverse` the
// largest 1 / a, by which results are divided if nodes have weights.
HOPFUSE_FN PassLoss ppr_pass_loss(int64_t longest_row, double largest_scale, double largest_inverse = 1.0) {
    const double roundings = static_cast<double>(PPR_SEGMENT + longest_row / PPR_SEGMENT + 16);
    const double lost = roundings * 5.9604644775390625e-8;
    const double least = PPR_LEAST * (largest_inverse + 2.0 * static_cast<double>(longest_row) * largest_scale);
    return PassLoss{lost < 0.5 ? lost / (1.0 - lost) : infinite64(), least};
}

// Whether a query's smallest factor of a row, a / D, or its product with d is subnormal in float32, so that its rounding
// error is not relative. Such a walk has no local bounds and is not refined.
HOPFUSE_FN bool ppr_row_factor_underflows(float factor, double damping) {
    constexpr double least_normal = 1.1754943508222875e-38;
    const double whole = static_cast<double>(factor);
    return damping > 0.0 && !(whole * static_cast<double>(static_cast<float>(damping)) >= least_normal);
}

// An upper bound of the exact average.
HOPFUSE_FN double ppr_average_above(double average, PassLoss loss) {
    return (average * (1.0 + loss.share) + loss.least) * (1.0 + 4.0 * PPR_UNIT);
}

// The rest for near_v = fl(r_v / deg_v): float64 rounding is relative to |x^_v| / deg_v, which is at most the largest
// b_u / (1 - d), since D^-1 x* = sum_t d^t P^t b, plus the bound per node. `restart`: the largest b.
HOPFUSE_FN double ppr_rest_of_rho(float restart, double per_degree, double slack, PassLoss loss, double damping) {
    const double exact = (static_cast<double>(restart) * PPR_NEAR + loss.least) / (1.0 - damping);
    return (2.0 * slack * (exact + per_degree) + loss.least) * (1.0 + 1e-6);
}

// A node's error, divided by its degree, without its own near_v: from other nodes, whose largest average of near_u is
// `largest` as computed by a pass, and from the rests of rho.
HOPFUSE_FN double ppr_local_bound(double largest, double rest, PassLoss loss, double damping) {
    const double factor = damping / (1.0 - damping);
    const double beyond = damping == 0.0 ? 0.0 : ppr_average_above(largest, loss) * factor * PPR_NEAR;
    return (rest * (1.0 + factor) + beyond) * (1.0 + 16.0 * PPR_UNIT) + loss.least;
}

// ---- Refinement: hopfuse/ppr.h, REFINEMENT --------------------------------------------------------------------------

// Whether a pass over a correction can be bounded: rows are short enough for their roundings.
HOPFUSE_FN bool ppr_may_correct(int64_t longest_row) { return is_finite(ppr_pass_loss(longest_row, 0.0).share); }

// By how much |r_v| / deg_v of x^ + D y may exceed |z_v - y_v| PPR_NEAR, from the largest |y|, the bound per node of x^ and
// the rest of its rho; the last two bound the difference of b and r_v / deg_v.
HOPFUSE_FN double ppr_corrected_rest(double largest, double per_degree, double rest, PassLoss loss) {
    const double walked = (loss.share + 4.0 * PPR_UNIT32) * largest;
    return (walked + 2.0 * PPR_UNIT32 * per_degree + rest + loss.least) * (1.0 + 16.0 * PPR_UNIT);
}

// ||r||_1 of x^ + D y without the slack and what sums miss, from the measured sum of deg |z - y|, `residual` = ||r||_1 of x^
// and `moved` = ||D y||_1.
HOPFUSE_FN double ppr_corrected_residual(double measured, double residual, double moved, double volume, PassLoss loss) {
    const double gaps = measured * (1.0 + 8.0 * PPR_UNIT32);
    const double walked = (loss.share + 4.0 * PPR_UNIT32) * moved + 2.0 * PPR_UNIT32 * residual;
    return (gaps + walked) * (1.0 + 1e-6) + 4.0 * volume * loss.least;
}

}  // namespace hopfuse
