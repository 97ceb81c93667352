// The arguments of the kernels of ppr_certify_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

// The scores of a block that writes them: of 64 nodes in 32 lanes.
constexpr int SCORES_OF_BLOCK = 2048;

struct ResidualArguments {
    PprScales scales;
    int64_t num_nodes;
    const int64_t* indptr;
    Entries entries;
    const uint8_t* edge_type;
    const double* eta;
    PprIterate iterate;  // x^
    RowSet long_rows;    // rows longer than a segment
    LongRows segments;
    int64_t num_segments;
    double* partial;  // (segments, L) their sums
    RowSet restart_rows;
    const double* restart;  // (rows, L) s
    const double* lost;     // (L,)
    PprCertified certified;
    int32_t symmetric;
    const int32_t* left;  // (1,) lanes that need it, or null
    float* improved;      // (N, L) or null
    float* correction;    // (N, L) or null
    JoinRoom join;
    double *residual, *bound, *per_degree;  // (L,)
};

// Lanes that are copied, (L,) each: those that are not open and, unless `passes` is null, have ended with a pass.
struct PprKept {
    const int32_t* open;
    const int64_t* passes;
    int64_t number;
};

using MassKernel = void(PprScales, int64_t, PprIterate, JoinRoom, double*);
using ScaleKernel = void(PprScales, const double*, const double*, const int32_t*, const int32_t*, int64_t, PprIterate,
                         JoinRoom, double*);
using ResidualKernel = void(ResidualArguments);
using KeepKernel = void(const float*, float*, PprKept, int64_t);
using ScoresKernel = void(PprIterate, const int32_t*, int64_t, int32_t, float*);

}  // namespace hopfuse
