// Degrees in the form that PPR's float64 kernels read, and tiles of rows. Device code only.
#pragma once

#include "hopfuse/ppr_certificate.h"
#include "ppr_walk.h"

namespace hopfuse {

// Degrees that the walk uses: (N, T') and (N,), or with a value per lane.
struct Scales {
    const double* scale;      // 1 / degree, 0 where no walk continues
    const double* unscale;    // the degree, 1 where it is 0; or null: 1
    const float* attraction;  // (N, L) node weights, 0 where a lane may not hold mass; or null: all 1
    int per_lane;
    int per_type;
    int num_types;

    template <int L>
    __device__ double weight(int64_t row, int lane) const {
        return unscale == nullptr ? 1.0 : unscale[per_lane ? row * L + lane : row];
    }

    // A measured value of a row, which is at least 0, divided by its node weight.
    template <int L>
    __device__ double over_weight(double measured, int64_t row, int lane) const {
        return attraction == nullptr ? measured : over_attraction(measured, attraction[row * L + lane]);
    }

    // 1 - (sum of row u of P).
    template <int L>
    __device__ double lost_share(const double* eta, int64_t row, int lane) const {
        const int types = per_type ? num_types : 1;
        double kept = 0.0;
        for (int t = 0; t < types; ++t) {
            const int64_t at = row * types + t;
            const double share = per_type && eta != nullptr ? eta[t * L + lane] : 1.0;
            kept += scale[per_lane ? at * L + lane : at] > 0.0 ? share : 0.0;
        }
        return kept < 1.0 ? 1.0 - kept : 0.0;
    }
};

// The state that a walk has ended with: even passes write the first buffer.
struct Iterate {
    float *even, *odd;
    const int64_t* last_pass;  // or null: the first buffer

    __device__ float* state() const { return last_pass == nullptr || *last_pass % 2 == 0 ? even : odd; }
};

// A lane's residual and the bounds that follow from it.
struct Certificate {
    double residual;    // ||r||_1
    double bound;       // ||x^ - x*||_1 <= bound
    double per_degree;  // |x^_v - x*_v| <= deg_v per_degree; infinity if that does not hold
};

// The inputs of a certificate besides the measurements, per lane.
struct Certified {
    const double* damping;
    const double* slack;
    const double* missed;
    const int32_t* keeps;

    __device__ Certificate of(const Measured& measured, int query) const {
        const double residual = ppr_sum(measured.sum), d = damping[query];
        return Certificate{residual, ppr_bound(residual, slack[query], missed[query], d),
                           ppr_node_bound(keeps[query] != 0, measured.largest, slack[query], d)};
    }
};

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
