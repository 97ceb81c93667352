// What the float64 residual of a returned x^ proves: hopfuse/ppr.h, STOP. Shared by host and device.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/ppr_sum.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int PPR_POLISH_STEPS = 32;      // at most so many power steps in float64
constexpr double PPR_POLISH_GAIN = 0.98;  // a step that leaves more of the bound is the last

constexpr double PPR_UNIT = 1.1102230246251565e-16;  // float64's unit roundoff

// The float64 rounding of r_v itself, relative to (d P'|x| + s + |x|)_v, which is at most 2 |x_v| + |r_v|: an entry carries
// at most `longest_row` roundings of its row's sum and as many of its source's degree, `types` of the latter's sum over
// types, and restarts at most 4 levels of the blocked tree, 37 each; 256 are these and the few products of a row.
// `longest_row`: most entries that count in a row, or out of a node.
HOPFUSE_FN double ppr_slack(int64_t longest_row, int64_t types) {
    return 2.0 * PPR_UNIT * static_cast<double>(longest_row + types + 128);
}

// ||x^ - x*||_1 <= bound, from ||r||_1 and what sums over nodes may have missed of it (ppr_sum.h). What slack is relative to
// sums to no more than 3 (1 + ||r||_1 / (1 - d)), since x* sums to 1.
HOPFUSE_FN double ppr_bound(double residual, double slack, double missed, double damping) {
    const double whole = residual + missed;
    const double rounded = 3.0 * slack * (1.0 + whole / (1.0 - damping));
    return (whole + rounded) / (1.0 - damping) * (1.0 + 4.0 * PPR_UNIT);
}

// |x^_v - x*_v| <= deg_v times this, from the largest (2 slack |x_u| + |r_u|) / deg_u; `holds`: the operator is symmetric
// and no mass is lost. Infinity where it does not hold.
HOPFUSE_FN double ppr_node_bound(bool holds, double largest, double slack, double damping) {
    return holds ? largest * (1.0 + 2.0 * slack) / (1.0 - damping) * (1.0 + 4.0 * PPR_UNIT) : infinite64();
}

constexpr double PPR_LEAST = 1.401298464324817e-45;  // float32's least number above 0
constexpr double PPR_ROUNDED =
    5.9604644775390625e-8 * (1.0 + 1e-6);  // |fl(x) - x| <= PPR_ROUNDED |fl(x)| + PPR_LEAST in float32

// What rounding the sum of x^ and its correction to float32 adds to ||x - x*||_1: from the sum of what the rounded numbers
// lack, itself of float32 numbers, and what that sum may have missed.
HOPFUSE_FN double ppr_rounding(double lacking, double missed) { return (lacking + missed) * (1.0 + 1e-6) + 1e-30; }

// The error of a node of a refined x^, from the bound per node of the sum that was rounded.
HOPFUSE_FN NodeError ppr_refined_error(double per_degree) { return NodeError{per_degree, PPR_LEAST, PPR_ROUNDED}; }

// The error of a node of x^: by its degree, or where that does not hold as much as all nodes together.
HOPFUSE_FN NodeError ppr_final_error(double bound, double per_degree) {
    return is_finite(per_degree) ? NodeError{per_degree, 0.0, 0.0} : NodeError{0.0, bound, 0.0};
}

}  // namespace hopfuse
