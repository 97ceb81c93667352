// Checks of what callers give, in one pass and without temporaries. No answer is computed here.
#pragma once

#include <cstdint>

#include "hopfuse/status.h"

namespace hopfuse {

// Rows of (node, weight), nodes in any order and none twice in a row; node -1 stands for none.
struct GivenRestarts {
    int64_t batch;
    const int64_t* indptr;  // (B + 1,)
    const int64_t* node;    // the caller's
    const double* weight;
    int64_t num_nodes;
    const int32_t* internal_of;  // (N,)
    bool may_be_empty;
};

// The same by internal node, ascending, weights above 0 alone: what PprQueries has (hopfuse/ppr.h).
struct RestartRows {
    int64_t* indptr;  // (B + 1,)
    int32_t* node;    // room for every entry given
    double* weight;
};

// What is wrong, and the first entry or row of which it is; what stands further up here is looked for first.
enum class RestartFault : int {
    none = 0,
    outside,     // an entry's node is neither in the graph nor -1
    bad_weight,  // an entry's weight is NaN, infinite or negative
    empty_row,   // a row has no weight above 0, and may not be empty
    sum_beyond,  // a row's weights sum beyond float64
};

struct RestartFinding {
    RestartFault fault = RestartFault::none;
    int64_t at = 0;
};

// Where a fault is found, what `rows` hold means nothing.
Status read_restarts(const GivenRestarts& given, const RestartRows& rows, RestartFinding& found);

// Weights of nodes for each query, of float32 or float64. Where `allow` is given it excludes nodes.
struct GivenNodeWeights {
    int64_t batch, columns;
    const float* single;  // (B, columns), or null
    const double* wide;   // (B, columns), or null
    int64_t num_nodes;
    const int32_t* node;         // (columns,) internal, none twice
    const uint8_t* is_weighted;  // (N,) by internal node: has a column
    const uint8_t* has_entries;  // (N,) by internal node
    const uint8_t* allow;        // (B, N) or (1, N) by internal node, or null
    bool allow_shared;
};

enum class NodeWeightFault : int {
    none = 0,
    bad_weight,  // a weight is NaN, infinite or negative
    all_zero,    // a row has no weight above 0
};

struct NodeWeightFinding {
    NodeWeightFault fault = NodeWeightFault::none;
    int64_t row = 0, column = 0;
};

// The weights that PprQueries has, (B, columns), and that of each query's other nodes, (B,), which weigh 1: hopfuse/ppr.h,
// NODE WEIGHTS. Finds the first fault; then what is written means nothing.
Status read_node_weights(const GivenNodeWeights& given, float* weight, float* other_weight, NodeWeightFinding& found);

// What keeps a vector from having float32 scores.
enum class VectorFault : int {
    none = 0,
    too_large,  // a NaN, an infinite entry, or a squared norm above half of float32's range
    too_small,  // a squared norm below float32's normal range
};

struct VectorFinding {
    VectorFault fault = VectorFault::none;
    int64_t row = 0;
};

// The first of `count` vectors that is too large; else, where `needs_length`, the first that is too small.
VectorFinding first_unscorable(const float* vectors, int64_t count, int64_t dim, bool needs_length, int threads);

}  // namespace hopfuse
