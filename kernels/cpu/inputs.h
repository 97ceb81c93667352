// Checks and converts inputs in one pass and without temporaries. No results are computed here.
#pragma once

#include <cstdint>

#include "hopfuse/execution.h"
#include "hopfuse/status.h"

namespace hopfuse {

// Rows of (node, weight), nodes in any order and each at most once in a row; node -1 is padding.
struct GivenRestarts {
    int64_t batch;
    const int64_t* indptr;  // (B + 1,)
    const int64_t* node;    // the caller's
    const double* weight;
    int64_t num_nodes;
    const int32_t* internal_of;  // (N,)
    bool may_be_empty;
};

// The same by ascending internal node, with weights above 0 only, as PprQueries needs it (hopfuse/ppr.h).
struct RestartRows {
    int64_t* indptr;  // (B + 1,)
    int32_t* node;    // as large as the input
    double* weight;
};

// The kinds of faults, in the order in which they are looked for. A finding names the first entry or row with the fault.
enum class RestartFault : int {
    none = 0,
    outside,     // an entry's node is neither in the graph nor -1
    bad_weight,  // an entry's weight is NaN, infinite or negative
    empty_row,   // a row has no weight above 0, and may not be empty
    sum_beyond,  // the sum of a row's weights overflows float64
};

struct RestartFinding {
    RestartFault fault = RestartFault::none;
    int64_t at = 0;
};

// If a fault is found, the content of `rows` is unspecified.
Status read_restarts(const GivenRestarts& given, const RestartRows& rows, RestartFinding& found);

// Node weights of each query, float32 or float64. `allow`, if given, excludes nodes.
struct GivenNodeWeights {
    int64_t batch, columns;
    const float* single;  // (B, columns), or null
    const double* wide;   // (B, columns), or null
    int64_t num_nodes;
    const int32_t* node;         // (columns,) internal, each at most once
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

// Computes the weights (B, columns) that PprQueries needs, and (B,) the weight of each query's other nodes, which is 1
// before scaling: hopfuse/ppr.h, NODE WEIGHTS. Finds the first fault; the outputs are then unspecified.
Status read_node_weights(const GivenNodeWeights& given, float* weight, float* other_weight, NodeWeightFinding& found);

// Why a vector cannot be scored in float32.
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
Status first_unscorable(const float* vectors, int64_t count, int64_t dim, bool needs_length, const Execution& execution,
                        VectorFinding& found);

}  // namespace hopfuse
