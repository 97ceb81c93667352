// Settles lists that the certificate of x^ leaves unproven, by refinement and local bounds: LOCAL BOUNDS and REFINEMENT in
// kernels/include/hopfuse/ppr.h. What is decided about a lane is in hopfuse/ppr_settle.h, for a CPU too.
#pragma once

#include <span>

#include "hopfuse/ppr_settle.h"
#include "ppr_topk.h"

namespace hopfuse::device {

// The memory needed beside the block and the correction: two states and the segment sums.
struct SettlingRoom {
    Array<float> other, spare, partial;

    SettlingRoom(Queue& queue, const PprBlock& block);
};

// A block whose lists are written, and what is known of its lanes.
struct Settled {
    LaneFlags proven, converged;  // by lane; `converged`: whether tol is met
};

// Proves lists of lanes where possible, and writes them. `certificate` is that of x^, `rows` are the lanes' rows of the answers,
// ascending, and `passes` (L,) those that each query has walked, including the certifying one.
Settled settle(Queue& queue, TopkSearch& search, Certifier& certifier, const Certificate& certificate,
               std::span<const int64_t> rows, const WalkAnswers& answers, std::span<const int64_t> passes);

}  // namespace hopfuse::device
