// What PPR's float64 kernels read of degrees, of a walk's end and of a certificate; see ppr_scales.h.
#pragma once

#include "grid_join.h"
#include "ppr_walk.h"

namespace hopfuse {

// Degrees that the walk uses: (N, T') and (N,), or with a value per lane.
struct PprScales {
    const double* scale;      // 1 / degree, 0 where no walk continues
    const double* unscale;    // the degree, 1 where it is 0; or null: 1
    const float* attraction;  // (N, L) node weights, 0 where a lane may not hold mass; or null: all 1
    int32_t per_lane;
    int32_t per_type;
    int32_t num_types;
};

// The state that a walk has ended with: even passes write the first buffer.
struct PprIterate {
    float *even, *odd;
    const int64_t* last_pass;  // or null: the first buffer
};

// The inputs of a certificate besides the measurements, per lane.
struct PprCertified {
    const double* damping;
    const double* slack;
    const double* missed;
    const int32_t* keeps;
};

}  // namespace hopfuse
