// The arguments of the kernels of ppr_f32.cu.
#pragma once

#include "grid_join.h"
#include "ppr_walk.h"

namespace hopfuse {

constexpr int PASS_LANES = 4;  // lanes of a thread of a pass
constexpr int EARLY_ROWS = 8;  // the fewest rows, or segments, that a warp of one of the first passes has

// The control state of lanes during a walk.
struct PprDecision {
    const int64_t *measured_from, *limit;
    const float *theta, *shrink;
    int32_t* walking;  // (L,) 0: the lane's state does not change
    int64_t* passes;
    int32_t* left;       // (1,) lanes that walk
    int64_t* last_pass;  // (1,) the pass that wrote the walk's last iterate
};

// What differs from pass to pass.
struct PprStep {
    int64_t number;
    const float* current;
    float* next;             // the state before `current`, except in the first pass
    const uint64_t* before;  // a bit for each row of it that is written, others being 0; or null: all rows are
    const float* omega;      // (L,), or null: power iteration
    double* measured;        // (2, L) the L1 residual and the largest change, or null: not measured
    int32_t ends;            // whether lanes may end with a measured pass
};

struct PassArguments {
    DeviceRows rows;
    int64_t num_nodes;
    float* partial;    // (segments, L)
    RowSet long_rows;  // rows longer than a segment
    LongRows segments;
    RowSet restart_rows;
    const float* restart;        // (rows, L)
    const float* factor;         // g: (N,) or (N, L), or null: 1
    const float* attraction;     // (N, L) node weights, or null: all 1
    const double* scale64;       // (N, L) 0 where a degree is 0, or null: only rows without entries have degree 0
    const float* damping;        // (L,)
    const int32_t* accelerates;  // (L,) 0: the lane's omega is 1
    const float* degree;         // (N,) or (N, L), or null: 1
    const double* anchor;        // (L,) of the residual
    JoinRoom join;
    PprDecision decision;
    PprStep step;
};

// The shared memory of a block of a pass: what the rows of a lane have in common and, where the pass measures, what the threads
// have found in their four lanes, and room to join it.
struct LaneFactors {
    alignas(16) float damping[32], omega[32];
    int32_t exponent[32];  // of the residual's anchor
    uint32_t walking;      // a bit for each lane that walks
};

struct MeasuredFour {
    alignas(16) uint32_t whole[4], grains[4];
    float largest[4];
};

struct PassShared {
    LaneFactors factors;
    PprStep step;  // of a walk in one launch
    MeasuredFour found[JOIN_THREADS];
    JoinShared join;
};

struct SegmentArguments {
    DeviceRows rows;
    LongRows segments;
    const float* state;
    int64_t num_segments;
    const int32_t* left;
    float* partial;  // (segments, L)
};

// The rows of a state that may not be 0.
struct NonzeroRows {
    const uint64_t* words;  // a bit for each row
    int32_t kind;           // EdgeKind
};

// The start of a walk: rows that restart and, if `all` or if no lane walks, zeros elsewhere.
struct StartArguments {
    int64_t num_nodes;
    RowSet restart_rows;
    const float* restart;  // (rows, L)
    int32_t all;
    const int32_t* left;
    float* current;
};

struct EarlyPassArguments {
    PassArguments walk;
    NonzeroRows nonzero;
    uint64_t* reached;  // the nonzero rows of the next state
    int32_t fills;      // whether its other rows are written, too
};

struct EarlySegmentArguments {
    SegmentArguments walk;
    NonzeroRows nonzero;
};

// The rest of a walk.
struct WalkArguments {
    PassArguments passes;  // with the first step; its `omega` is that of all, its `measured` that of measured ones
    int64_t num_segments;
    int64_t first_measured, last;
    float* state;       // that the first of them reads
    uint32_t* barrier;  // of grid_barrier
};

using StartKernel = void(StartArguments);
using SegmentsKernel = void(SegmentArguments);
using PassKernel = void(PassArguments);
using EarlySegmentsKernel = void(EarlySegmentArguments);
using EarlyPassKernel = void(EarlyPassArguments);
using WalkKernel = void(WalkArguments);

}  // namespace hopfuse
