// The arguments of the kernels of ppr_settle_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

// How many lanes of a block something holds for; launches for which it holds for none end at once.
struct SettlingCounts {
    int32_t polishing;  // float64 steps may improve their bound
    int32_t open;       // further passes may prove their lists
    int32_t examined;   // those of them whose turn it is
    int32_t around;     // those of these that local bounds may prove
    int64_t next;       // the least `look` of open lanes, or 0
    int64_t refused;    // neither open nor final
};

// A lane's x^, its walk and its certificate, (L,) each; what is the same for all lanes has the stride 0.
struct CertifiedLanes {
    const int64_t* rows;  // of the answers, or -1
    const double* damping;
    const int64_t *limit, *passes;
    const int32_t *walking, *unproven;
    const double *residual, *bound, *per_degree;
    const double *slack, *missed;
    const double* volume;
    const uint64_t* longest_row;
    int32_t volume_stride, longest_stride;
    const float* least;  // (2, L) the smallest node weight, and the smallest factor of a row; or null: without weights
    double tol;
    int64_t max_iter;
    int32_t lanes;  // L
};

// Float64 power steps.
struct PolishLanes {
    int32_t* stays;         // 0 in lanes that take another step
    double* bound;          // before the step
    int64_t *steps, *rows;  // (L,) rows of the answers whose x^ has changed, or -1
    int64_t* passes;        // steps, less the one that writing an answer counts
    SettlingCounts* counts;
};

// Lanes whose lists are being settled, (L,) each.
struct SettlingLanes {
    int64_t *passes, *look;  // PprProgress
    int64_t* more;           // passes to the next look, less the one that writing an answer counts
    double* rest;            // by how much |rho| of x^ may exceed the stored correction
    double *share, *least;   // PassLoss
    int32_t *open, *examined, *around;
    int64_t *examined_rows, *around_rows;   // of the answers, or -1
    double *residual, *bound, *per_degree;  // of x^ + D y
    double* refined_rest;
    // The same numbers in every lane, for passes and answers: 0, 1, and the anchor of sums.
    int64_t* zero;
    float* one;
    double* anchor;
    SettlingCounts* counts;
};

// What was written of the lists, (B,) each.
struct WrittenLists {
    const double* shortfall;
    const uint8_t* converged;
    int32_t* status;
    const int32_t* seed_status;  // (L,)
};

struct PolishArguments {
    CertifiedLanes known;
    PolishLanes lanes;
    int32_t begins;  // whether no step has been taken
};

struct SettleArguments {
    CertifiedLanes known;
    PolishLanes polish;
    SettlingLanes lanes;
    WrittenLists lists;
    int32_t order;   // whether the order is to be proven
    int64_t number;  // examined lanes are those with this `look`; 0: those with the least
};

// Where the correction y and the sums over it are; `measured`, (2, L) each, has |z - y| first, then |y|.
struct RefineArguments {
    CertifiedLanes known;
    SettlingLanes lanes;
    PprScales scales;
    int64_t num_nodes;
    const float* x;
    const float* solved;  // y
    float* gap;           // z, which becomes |z - y|
    float* refined;       // x^ + D y
    JoinRoom join;
    double* measured;
    int32_t again;  // whether `refined` is written once more, for lanes with local bounds
};

struct RestArguments {
    CertifiedLanes known;
    SettlingLanes lanes;
    RowSet restart_rows;
    const float* restart;     // (rows, L) b
    const float* attraction;  // (N, L) node weights, or null: all 1
    int64_t num_nodes;
    JoinRoom join;
    const double* scale;  // (2, L) what ppr_settle_scale has measured
};

struct AroundArguments {
    CertifiedLanes known;
    SettlingLanes lanes;
    const float* average;     // (N, L) of |z - y| over neighbours
    const float* attraction;  // (N, L) node weights, or null: all 1
    int64_t num_nodes;
    JoinRoom join;
};

using PolishKernel = void(PolishArguments);
using SettleKernel = void(SettleArguments);
using ScaleOfRowsKernel = void(PprScales, int64_t, const SettlingCounts*, JoinRoom, double*);
using RestKernel = void(RestArguments);
using RefineKernel = void(RefineArguments);
using AroundKernel = void(AroundArguments);

}  // namespace hopfuse
