// Degrees in the form that PPR's float64 kernels read, and tiles of rows. Device code only.
#pragma once

#include "arguments/ppr_scales.h"
#include "hopfuse/ppr_certificate.h"
#include "ppr_walk.h"

namespace hopfuse {

// The degree of a row, 1 where it is 0.
template <int L>
HOPFUSE_DEVICE double row_weight(const PprScales& s, int64_t row, int lane) {
    return s.unscale == nullptr ? 1.0 : s.unscale[s.per_lane ? row * L + lane : row];
}

// A measured value of a row, which is at least 0, divided by its node weight.
template <int L>
HOPFUSE_DEVICE double over_weight(const PprScales& s, double measured, int64_t row, int lane) {
    return s.attraction == nullptr ? measured : over_attraction(measured, s.attraction[row * L + lane]);
}

// 1 - (sum of row u of P).
template <int L>
HOPFUSE_DEVICE double lost_share(const PprScales& s, const double* eta, int64_t row, int lane) {
    const int types = s.per_type ? s.num_types : 1;
    double kept = 0.0;
    for (int t = 0; t < types; ++t) {
        const int64_t at = row * types + t;
        const double share = s.per_type && eta != nullptr ? eta[t * L + lane] : 1.0;
        kept += s.scale[s.per_lane ? at * L + lane : at] > 0.0 ? share : 0.0;
    }
    return kept < 1.0 ? 1.0 - kept : 0.0;
}

HOPFUSE_DEVICE float* state_of(const PprIterate& iterate) {
    return iterate.last_pass == nullptr || *iterate.last_pass % 2 == 0 ? iterate.even : iterate.odd;
}

// A lane's residual and the bounds that follow from it.
struct Certificate {
    double residual;    // ||r||_1
    double bound;       // ||x^ - x*||_1 <= bound
    double per_degree;  // |x^_v - x*_v| <= deg_v per_degree; infinity if that does not hold
};

HOPFUSE_DEVICE Certificate certificate_of(const PprCertified& known, const Measured& measured, int query) {
    const double residual = ppr_sum(measured.sum), d = known.damping[query];
    return Certificate{residual, ppr_bound(residual, known.slack[query], known.missed[query], d),
                       ppr_node_bound(known.keeps[query] != 0, measured.largest, known.slack[query], d)};
}

}  // namespace hopfuse

// A thread's tile, without rows beyond the last one, and its lane.
#define HOPFUSE_TILE_AND_LANE(L)                                                        \
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; \
    const TileRange rows(thread / L, num_nodes);                                        \
    const int lane = static_cast<int>(thread % L)
// Returns, except in the threads that write the joined result of all tiles.
#define HOPFUSE_JOIN_TILES(L, own, room) \
    __shared__ JoinShared shared;        \
    Measured measured = own;             \
    if (!join_grid<L>(measured, room, &shared) || threadIdx.x >= L) return
