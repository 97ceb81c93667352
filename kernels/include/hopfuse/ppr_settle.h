// What is decided about a query's list that the certificate of x^ does not prove: hopfuse/ppr.h, REFINEMENT and LOCAL BOUNDS.
// Shared by the hosts of a CPU and of a device, which settle blocks of lanes by their own passes.
#pragma once

#include "hopfuse/ppr_certificate.h"
#include "hopfuse/ppr_plan.h"

namespace hopfuse {

// The progress of a lane's query.
struct PprProgress {
    int64_t passes;  // so far, including the certifying one
    int64_t look;    // the passes of a refinement after which to look next, or 0
};

// Whether max_iter (0: none) allows this many more passes.
HOPFUSE_FN bool ppr_allows(const PprProgress& course, int64_t max_iter, int64_t more) {
    return max_iter == 0 || course.passes + more <= max_iter;
}

// Plans the next look, if more passes may prove a list whose errors are `shortfall` times too large. Returns its passes, or 0.
HOPFUSE_FN int64_t ppr_plan_look(PprProgress& course, double damping, double shortfall, bool order, int64_t longest_row,
                                 int64_t max_iter) {
    const int64_t next = ppr_next_check_pass(damping, course.look, shortfall, order), more = next - course.look;
    if (next == 0 || !ppr_may_correct(longest_row) || !ppr_allows(course, max_iter, more)) return 0;
    course.passes += more;
    course.look = next;
    return more;
}

// The certificate of a lane.
struct PprBounds {
    double residual, bound, per_degree;
};

// What is measured of a correction y and of x^ + D y, in this lane.
struct PprCorrection {
    double residual, largest_gap;  // the sum of deg |z - y|, and the largest |z - y|
    double moved, largest;         // ||D y||_1, and the largest |y|; largest over the node weight
    double lacking;                // what rounding x^ + D y to float32 loses
};

// The certificate of x^ + D y, including its rounding, and the rest of its |rho|.
struct PprRefined {
    PprBounds bounds;
    double rest;
};

// `known` and `rest` are those of x^.
HOPFUSE_FN PprRefined ppr_refined(const PprBounds& known, double rest, const PprCorrection& found, PassLoss loss,
                                  double slack, double missed, double volume, double damping) {
    const double rounding = ppr_rounding(found.lacking, missed);
    const double residual = ppr_corrected_residual(found.residual, known.residual, found.moved + missed, volume, loss);
    const double beyond = ppr_corrected_rest(found.largest, known.per_degree, rest, loss);
    const double rho = found.largest_gap * PPR_NEAR + beyond;
    const PprBounds bounds = {residual + (1.0 + damping) * rounding,
                              ppr_bound(residual, slack, missed, damping) + rounding,
                              ppr_node_bound(true, rho, slack, damping)};
    return PprRefined{bounds, beyond};
}

}  // namespace hopfuse
