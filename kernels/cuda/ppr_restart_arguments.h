// Arguments of the kernels of ppr_restart_f32.cu;
// python/hopfuse/backends/cuda/arguments.py describes the same structs. L lanes
// are stored side by side.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

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

struct AllowedArguments {
    const int32_t* indices;
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

struct DegreeArguments {
    const int64_t* indptr;  // rows of outgoing edges (of all edges, if undirected)
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const double* degree;  // (N, T) of the whole graph
    const double* eta;     // (T, L) or null
    const float* shares;   // (N, L) the factor of a node, or null: all 1
    int32_t num_types;
    int32_t per_type;
    const int64_t* in_indptr;  // rows of incoming edges if the graph is
                               // directed, else null
    const int32_t* in_indices;
    int64_t num_nodes;
    float* scale32;
    float* unscale32;
    double* scale64;
    double* unscale64;
    uint64_t* longest;  // (L,) or null
    uint64_t* joined;   // (L,) or null
    float* least;       // (2, L) or null
};

struct RestartArguments {
    const double* scale;  // Scales of ppr_scales.h
    const double* unscale;
    const float* attraction;
    int32_t per_lane;
    int32_t per_type;
    int32_t num_types;
    const int64_t* seed_node;  // (queries, width) the caller's ids
    const double* seed_weight;
    int32_t seed_width;  // -1: restarts are given
    int32_t queries;
    int32_t may_be_empty;
    const int32_t* internal_of;
    int64_t num_nodes;
    const float* mask;     // (N, L) or null
    const int64_t* begin;  // (L,) start of each lane's restarts
    int64_t* end;
    int32_t* node;
    double* value;
    uint64_t* words;  // the set of restart rows
    int32_t* rank;
    const double* damping;  // (L,)
    const double* volume;   // (L,) or (1,)
    int32_t symmetric;
    double tol;
    int64_t max_iter;
    int64_t first;  // the first measured pass and the last one, if a
                    // recording has a fixed number; else 0
    int64_t last;
    int64_t table_rows;
    double* restart64;  // (table_rows, L)
    float* restart32;
    int64_t* limit;  // (L,) and so on: the state of a walk
    int64_t* measured_from;
    int64_t* next_try;
    float* theta;
    float* shrink;
    double* anchor;
    int32_t* walking;
    int32_t* unproven;
    int64_t* passes;
    int32_t* left;       // (1,)
    int64_t* last_pass;  // (1,)
    const uint64_t* longest;
    const uint64_t* joined;
    double* slack;
    double* missed;
    int32_t* keeps;
    const float* least;
    int32_t* accelerates;
    int32_t* status;
    uint32_t* arrived;
    int64_t counters;
};

}  // namespace hopfuse
