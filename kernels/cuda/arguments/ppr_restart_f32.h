// The arguments of the kernels of ppr_restart_f32.cu.
#pragma once

#include "ppr_scales.h"

namespace hopfuse {

struct AllowedArguments {
    Entries entries;
    const int64_t* segment_begin;
    const int64_t* segment_end;
    int64_t num_segments;
    const float* mask;  // (N, L)
    uint64_t* allowed;  // (segments, L)
};

struct BeforeArguments {
    const int64_t* first_of;  // (long rows + 1,)
    int64_t num_rows;
    const uint64_t* allowed;  // (segments, L)
    int32_t* before;          // (segments, L)
};

// Where lanes may hold mass, and the node weights of a block's queries, in the caller's form.
struct MaskArguments {
    const uint8_t* allowed;  // (queries, N) or, shared, (1, N); or null
    int32_t shared;
    const float* own;       // (queries, columns) node weights, or null
    const int32_t* column;  // (N,) a node's, or -1
    int64_t columns;
    const float* other;  // (queries,) the weight of nodes without a column
    int32_t queries;
    int64_t num_nodes;
    float* least;  // (2, L) or null
    float* mask;   // (N, L)
};

// Degrees of one row and lane inside the lane's own subgraph, with its own edge types and node weights.
struct DegreeArguments {
    const int64_t* indptr;  // rows of outgoing edges (of any, where they go both ways)
    Entries entries;
    const uint8_t* edge_type;
    const double* degree;  // (N, T) of the whole graph
    const double* eta;
    const float* shares;  // (N, L) what a node counts for: its weight, or 1; 0 where it is excluded. Null: all 1
    int32_t num_types;
    int32_t per_type;
    const int64_t* in_indptr;  // rows of incoming edges where edges have a direction, else null
    Entries in_entries;        // of those rows
    int64_t num_nodes;
    float *scale32, *unscale32;
    double *scale64, *unscale64;
    uint64_t *longest, *joined;  // (L,), 0 beforehand; or null: a whole graph's are known
    float* least;                // (2, L), 1 beforehand; or null
};

// Seeds in the caller's form: rows of (queries, width), in any order, -1 for no seed. Width -1: restarts are given.
struct PprSeeds {
    const int64_t* node;  // the caller's ids
    const double* weight;
    int32_t width, queries;
    int32_t may_be_empty;
    const int32_t* internal_of;
    int64_t num_nodes;
    const float* mask;  // (N, L) where a lane may hold mass, or null
};

// The restarts of the block's queries, CSR, nodes ascending in a row.
struct PprRestarts {
    const int64_t* begin;  // (L,) by lane
    int64_t* end;
    int32_t* node;
    double* value;
    uint64_t* words;  // the rows' RowSet
    int32_t* rank;    // of words that have rows
    int32_t* marked;  // (rows,) these words
};

// The control state of a walk, per lane.
struct WalkState {
    int64_t *limit, *measured_from, *next_try;
    float *theta, *shrink;
    double* anchor;
    int32_t *walking, *unproven;
    int64_t* passes;
    int32_t* left;       // lanes that walk
    int64_t* last_pass;  // the pass that wrote the last iterate
};

struct RestartArguments {
    PprScales scales;
    PprSeeds seeds;
    PprRestarts restarts;
    const double* damping;  // (L,)
    const double* volume;   // (L,) or (1,)
    int32_t symmetric;
    double tol;
    int64_t max_iter;
    int64_t first, last;  // the first measured pass and the last one, if a recording has a fixed number; else 0
    double* restart64;    // (rows, L)
    float* restart32;
    WalkState walk;
    const uint64_t *longest, *joined;  // (L,) or, of the whole graph, (1,)
    double *slack, *missed;            // (L,) and so on
    int32_t* keeps;
    const float* least;
    int32_t* accelerates;
    int32_t* status;
};

using MaskKernel = void(MaskArguments);
using AllowedKernel = void(AllowedArguments);
using BeforeKernel = void(BeforeArguments);
using DegreesKernel = void(DegreeArguments);
using RestartKernel = void(RestartArguments);

}  // namespace hopfuse
