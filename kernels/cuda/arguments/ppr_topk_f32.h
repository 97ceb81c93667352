// The arguments of the kernels of ppr_topk_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

constexpr int SCAN_THREADS = 256, SCAN_WARPS = SCAN_THREADS / 32;
constexpr int SCAN_READS = 4;  // of a thread, each of four lanes, before any is compared: the loads overlap
constexpr int SELECT_THREADS = 256;
constexpr int SELECT_KEPT = 512;  // the most hits that a round of selection finds

// The nodes that are ranked, by max(y, 0) deg or, with `final`, by x^ itself.
struct CandidateArguments {
    PprIterate iterate;
    int32_t final;
    const float* degree;  // (N,) or (N, L), or null: 1
    int32_t per_lane;
    const int32_t* node_of;
    const int32_t* among;  // (count,) internal nodes, or null: all
    int64_t count;
    int32_t lanes;  // L
};

// Where a lane's best keys are written, and how many a round finds: few if few are requested, which leaves space for waiting
// keys, so that they are seldom sorted.
struct SelectionRounds {
    uint64_t* keys;  // (L, stride), with space for whole rounds, or null: one round is enough, in shared memory
    int64_t stride;
    int32_t kept;
};

// What is known of a group of candidates in a lane. The candidates are read by tiles of 512 bytes of a state, 128 / L rows; those
// of group g are the tiles g, g + count, g + 2 count and so on.
struct CandidateGroups {
    // (L, count) the largest key of a candidate, or 0. Its lowest bit, which no key of a score above 0 has, is set if a candidate
    // without such a score may hold mass.
    uint64_t* keys;
    float* reach;   // (L, count) the largest of a candidate that may hold mass (ppr_topk_f32.cu), or minus infinity
    int32_t count;  // a multiple of SCAN_WARPS
    int32_t tiles;  // of a group; the last ones may be beyond the last candidate
};

// What shows that two nodes have equal scores, or that a node has none: the entries of rows, and the restarts.
struct TwinTables {
    const int64_t* indptr;
    Entries entries;
    const uint8_t* edge_type;
    const float* mask;        // (N, L) or null
    const float* attraction;  // (N, L) node weights, or null: all 1
    RowSet restart_rows;
    const double* restart;  // (rows, L)
    int32_t lanes;          // L
    int32_t symmetric;      // whether the operator is
};

// How the best are selected and proven.
struct ListArguments {
    SelectionRounds rounds;
    const int32_t* internal_of;
    const double* unscale;
    const float* locals;  // (N, L) the part of the error that is specific to each node, or null
    int64_t k;
    int32_t order;  // whether the order is proven too
    TwinTables twins;
};

// The lanes that take part in a launch: those that a row of the answers waits for or, of a try, those that walk and whose turn
// it is.
struct LaneTurn {
    const int64_t* rows;  // (L,) -1: none; or null: a try
    const int32_t* walking;
    const int64_t* next_try;
    int64_t number;  // of the pass
};

// What a lane's error follows from: the largest |z - y| of a pass or, if that is null, the certificate.
struct ErrorArguments {
    const double* measured;  // (2, L)
    const double* damping;   // (L,) and so on
    const double *bound, *per_degree;
    int32_t refined;
    int32_t lanes;  // L
};

struct RankArguments {
    CandidateArguments candidates;
    ListArguments list;
    LaneTurn turn;
    ErrorArguments error;
    CandidateGroups groups;
};

// Where the answers of a batch are written, (B, width) and (B,).
struct PprAnswers {
    int64_t width;
    int64_t* ids;
    float* scores;
    float* score_bounds;
    int64_t* counts;
    uint8_t* proven;
    int64_t* iterations;
    double* residual;
    double* bound;
    uint8_t* converged;
    int32_t* status;
    double* shortfall;  // how far the list is from being proven
};

struct TryArguments {
    RankArguments rank;
    const double* damping;  // (L,) and so on
    const int32_t* accelerates;
    int32_t* walking;
    int64_t* passes;
    int64_t* next_try;
    int32_t* unproven;
    int32_t* left;       // (1,)
    int64_t* last_pass;  // (1,)
};

struct FinishArguments {
    RankArguments rank;
    const double *residual, *bound;  // (L,) and so on
    const int32_t* walking;
    const int64_t *limit, *passes;
    const int32_t* seed_status;
    double tol;
    int32_t goes_on;
    PprAnswers answers;
};

using ScanKernel = void(RankArguments);
using TryKernel = void(TryArguments);
using FinishKernel = void(FinishArguments);

}  // namespace hopfuse
