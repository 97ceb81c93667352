// Batched Personalized PageRank: the contract.
//
// FORMULA  For each query: x = d P' x + (1 - d) s, s >= 0 normalised to sum 1, 0 <= d < 1.
//   joint     P = rownorm(sum_t eta_t W_t): P[u, v] = w_uv eta_t / deg_u, deg_u = sum_t eta_t deg_t(u)
//   per_type  P = sum_t eta_t rownorm(W_t), sum_t eta_t <= 1
//   allow     the same on the subgraph induced by the allowed nodes (degrees counted inside it).
//   weights   with a_v >= 0 of each query's nodes, every w_uv counts as w_uv a_v: P[u, v] = w_uv eta_t a_v / D_u with D_u =
//             sum_x w_ux eta_t a_x over the entries out of u, and per_type the same of each W_t. On an undirected graph an
//             edge conducts a_u w a_v: the operator stays symmetric, with deg_u = a_u D_u. a_v = 0: v is not allowed.
//   Mass that a node without out-edges holds, or that rows summing to less than 1 lose, returns to s:
//   solved without it and normalised to sum 1, which is the same (del Corso, Gulli & Romani,
//   "Fast PageRank computation via a sparse linear system", 2005).
//
// NODE WEIGHTS  Only their ratios matter. A query's are divided by the power of two at or above the largest of its nodes, which
//   is exact; those below 2^-100 times that largest count as 0; what is left is rounded to float32, and is at least
//   PPR_LEAST_WEIGHT and at most 1. The largest is looked for among the nodes that have entries in the graph and that
//   `allow` admits; where others weigh more they count as 1: nothing walks to them. kernels/cpu/inputs.h reads them so.
//
// ORDER OF OPERATIONS (law 2: an answer depends on the query and the graph alone)
//   State y_u = x_u g_u in float32; joint: g_u = fl(1 / deg_u), or 1 where deg_u = 0; per_type: g = 1.
//   Row v sums its stored entries in ascending internal column (then type), in segments of
//   PPR_SEGMENT entries, each from +0; where `allow` is given, entries of allowed nodes alone are
//   counted, so that other nodes' edges never change a score:
//     joint     acc = fma(fl(w eta_t), y_u, acc)
//     per_type  acc = fma(w, fl(x_u fl(eta_t inv_deg_t(u))), acc)
//   and adds the segments in order to S_v. Then, with gd = fl(g_v fl(d)) and b = fl((1 - d) s_v / deg_v), taken
//   from left to right in float64 with 1 / deg_v rounded (1 where deg_v = 0, and for per_type):
//     z_v = fma(gd, S_v, b)                  (b = +0 where v has no restart)
//     power      y'_v = z_v
//     Chebyshev  y'_v = fma(omega, z_v - y-_v, y-_v), y- the iterate before y; where deg_v = 0,
//                y'_v = z_v
//   With node weights D is summed as a degree inside `allow` is, acc = fma(w, a_x, acc) in float64 over the entries of a type
//   in ascending order, then by types. The state is y_u = x_u fl(1 / D_u), so that rows sum as above, D stands for deg in b
//   and wherever y becomes x or R, and a row's factor is g_v = fl(a_v (1 / D_v)) from float64 (a_v where D_v = 0, and for
//   per_type). What is measured of a state for a bound per node, |z - y| here, is divided by a_v first. All a = 1 gives the
//   bits of no weights, and a of 0 and 1 those of `allow`.
//   Start: y- = 0, y = b. Weights that are all 1 may be implicit: fma(1, y, acc) is acc + y.
//   Chebyshev semi-iteration (Golub & Varga 1961) is used where the operator is symmetric (joint,
//   undirected), power iteration otherwise; that is omega = 1 in every pass where the operator is symmetric but the least
//   node weight of a node that walks says so (ppr_accelerates).
//
// SUMS over nodes (ppr_sum.h) take each term to the nearest grain, a power of two, ties to even, and add these without any
//   rounding: in whatever order nodes stand or are met, a sum is the same, and a node that adds 0 cannot be felt. Grains are
//   2^-50, a sum of 4 or more counts as infinite; R below is a forecast and has its own, and so has the
//   volume, the sum of fl(a_v D_v): degrees have no scale but their own, so its grain follows from the largest of them and
//   from how many there are (ppr_volume_anchor). Sums of whole numbers, as of edges without weights, are exact by it.
//   Promise: an empty place, which is a node without edges and restart, or one that `allow` excludes, changes no bit of a
//   query's scores, hits, proof or evidence, nor does how many there are or where: they are those of the graph without
//   it, whose nodes keep their order. A bound reads what the query may touch: the most entries that count in a row or out of
//   a node, and how many nodes have any.
//
// STOP  Pass j (j = 1, 2, ...) yields the residual of the iterate that it read,  R = sum_v fl(deg_v |z_v - y_v|)  of float32
//   terms by grains of 2^-40 of the power of two at or below theta rate, what R may be at the end, rounded to float32. The
//   pass limit K follows from the convergence theory: with
//   rate = (1 + sqrt(1 - d^2)) / d for Chebyshev, 1 / d for power, and start = 4 sqrt(vol) ||s||_{D^-1} / tol, or
//   2 / tol, K = floor(ln(start) / ln(rate)) + 2, float32 logarithms (hf_log), at most 100000 and at most max_iter;
//   K = 1 for d = 0. What pass j wrote is captured at the first pass from K - K / 4 on where that iterate's residual,
//   taken as fl(1 / rate) R, is at most theta = (1 - d) tol / 2, or at pass K. That is a forecast; the certificate
//   below measures.
//   The captured iterate becomes x^, the array that is returned: fl(max(y, 0) deg factor), multiplied
//   from left to right in float64, factor = 1 / min(sum(max(y, 0) deg), 4). One float64 pass
//   over x^ gives r = d P' x^ + (1 - d + d m) s - x^ (m: lost mass) and the bound ||r||_1 / (1 - d), its
//   own rounding added. Since r belongs to the float32 array that is returned, the bound holds float32
//   rounding exactly, not by a worst case. While bound > tol (and max_iter did not end
//   the walk) x^ becomes fl(x^ + r), a power step in float64, at most 32 times, until tol is met or a
//   step takes less than 2 % off the bound: then float32 holds no better answer.
//
// PROOF  With stop_when_proven a query that can lose no mass (a symmetric operator, no restart at a node without
//   edges) is first walked to where the float32 residual says that its k hits are proven (ppr_proof.h): tried after a pass
//   in the middle of the walk, then after as many passes (at most 8) as the error lacks, both rounded up to a multiple of
//   PPR_TRY_EVERY. Such an iterate is neither clamped nor normalised: its error is what its own residual says.
//   The float64 certificate of x^ has the last word, LOCAL BOUNDS with it; a query that both refuse is solved by tol.
//   A gap must be twice the two nodes' errors together, PPR_WAVERS of each score in these: a later iterate, or the rounding
//   of a refined one, then keeps the order.
//   Without prove_order the set of the hits is proven alone: each of them above all that is left out. They are listed by the
//   scores that are returned, so that the list of a smaller k is a subset of a larger one's, not a prefix.
//   Two hits with one score are in proven order where their rows have the same entries that count, their node weights are
//   equal and neither restarts: their exact scores are equal, and the lower id comes first. An empty place is known to have
//   the score 0.
//
// LOCAL BOUNDS  Let rho = D^-1 r. Since D^-1 P' D = P for the symmetric operator, D^-1 (x* - x^) = sum_t d^t P^t rho. P has no
//   negative entry, and no row of it sums to more than 1, so P^t |rho| <= max(P^j |rho|) for t >= j, and
//     |x*_v - x^_v| / deg_v <= sum_{t < j} d^t (P^t |rho|)_v + d^j / (1 - d) max_u (P^j |rho|)_u
//   for any j; j = 0 is the bound per node of the certificate. Residuals that float32 leaves stand at a few nodes (restarts
//   and hubs), so that one average over neighbours takes most of the largest away. A list that the certificate leaves
//   unproven, with errors less than 8 (a set: 64) times too large, is tried again with j = 1, and with errors less than 4 times too
//   large then, with j = 2; max_iter counts each as a pass.
//   In float32, as follows: |rho_v| <= |fl(r_v / deg_v)| PPR_NEAR + rest, the rest by v's own score (ppr_local_error) or, of
//   others, by the largest (ppr_rest_of_rho). P by a pass as above with d = 1, no restart and no iterate before, z_v =
//   fl(g_v S_v). All summands are at least 0, so a row's sum is at least the true one times 1 - k u, k the roundings on its
//   longest chain (ppr_pass_loss), but for products that underflow: at most half of float32's least number for each entry,
//   times g_v <= the largest 1 / deg. What is above the true average (ppr_average_above) goes on: max, with the rests of
//   others (ppr_local_bound), and for j = 2 the sum at each node, rounded up (ppr_local_above).
//   With node weights the state of such a pass is a_v rho_v, from fl(r_v / D_v), and it writes a_v (P rho)_v: what underflows
//   is divided by a_v and by D_v. A query whose rows have factors that float32 rounds as subnormal numbers has none of this.
//
// REFINEMENT  With stop_when_proven a list that stands, unproven though its bound per node holds, gets one step of
//   iterative refinement (Wilkinson 1963), unless max_iter forbids its passes. With r the float64 residual of x^:
//     b_v = fl(r_v / deg_v); y from passes as above over b in every row, y- = 0, y = b
//     t_v = fma(y_v, deg_v, x^_v) in float64, h_v = fl(t_v)
//   y is looked at after the passes that ppr_next_look says: by as many powers of seven as the error lacks, 49 at first and
//   10^5 in all; where those leave two passes or fewer to the last, y is looked at after the last. One more pass measures y
//   as STOP says, its z - y: by linearity the residual of x^ + D y is
//     D^-1 r(x^ + D y) = D^-1 r(x^) + d P y - y = z - y + (rounding of z: k u (P |y|)_v + underflow) + (D^-1 r(x^) - b)
//   so that max |z - y|, and what those parentheses are at most (ppr_corrected_rest), give the bound per node of x^ + D y, and
//   R, in grains of 2^-50, with the same for the sum (ppr_corrected_residual) ||r||_1. To the one PPR_ROUNDED h_v is added,
//   to the L1 bound sum |t_v - h_v|; the residual that is told is ||r||_1 + (1 + d) sum |t_v - h_v|, which that of h cannot
//   exceed. The list is ranked again by h. If it is still unproven, a local bound with j = 1 over |z - y| is tried where
//   LOCAL BOUNDS would: a pass more. Proven, or where more passes cannot prove it, h is returned; else y walks on to the
//   next look.
//
// TIES      top-k: higher score, then lower id; nodes with score 0 are no hits.
// ALIASING  No output overlaps an input or another output.
// THREADS   Any number gives the same bits. Thread-safe; the workspace is taken from a pool.
#pragma once

#include "hopfuse/integers.h"

#include "hopfuse/status.h"

namespace hopfuse {

constexpr int PPR_SEGMENT = 64;  // entries summed sequentially; the GPU's unit of work
constexpr int PPR_TILE = 64;     // rows that are worked on together
constexpr int PPR_SLICE = 8;     // chains of additions that a CPU runs side by side for a lane
// What a node that restarts has at the least: no node's restart is rounded to none.
constexpr double PPR_LEAST_SHARE = 4.9406564584124654e-324;
constexpr double PPR_LEAST_WEIGHT = 3.944304526105059e-31;  // 2^-101, of a node that is not absent
constexpr int PPR_FEW_LANES = 8;   // at most so many queries at once profit from rows by length
constexpr int PPR_TILE_LANES = 4;  // and at most so many from tiles

// The entries of rows that are stored by length, longest first, so that PPR_SLICE chains of additions run side by side. A
// unit is a segment of one of the first `long_rows` rows, or one of the other rows, which have a segment at most. Units stand
// longest first, segments before rows, each of the two filled up to whole slices by empty units. A slice has entry 0 of
// each of its units, then entry 1 of each, up to the end of its shortest; then what is left of each unit in turn.
struct PprSlices {
    int64_t num_units, segment_units;
    int64_t long_rows;       // a multiple of PPR_SLICE, or N
    const int64_t* indptr;   // (num_units + 1,)
    const int32_t* segment;  // (segment_units,) which segment each is, in the order of rows; fillers are one more
    const int32_t*
        row_segments;        // (long_rows + 1,) the first segment of each long row, and how many segments there are
    const uint16_t* narrow;  // (nnz,) the stored row of each entry's source, or null where 16 bits do not hold it
    const int32_t* wide;     // (nnz,) the same where they do not, else null
    const float* weight;     // (nnz,) each of these as in PprGraph
    const uint8_t* edge_type;
    const float* share32;
};

// The entries of a large graph for few lanes on a CPU, so that what a tile reads and adds to stays in a cache. Here a unit is
// a segment of a row; units go by row. Rows are cut into blocks, each of whole tiles of PPR_TILE rows and at most 65,536
// units, and their sources into strips of `strip` nodes. Entries stand by block, by strip, by source and by unit.
struct PprTiles {
    int64_t num_blocks, num_strips;
    int64_t strip;             // at most 65,536
    int64_t most_units;        // of a block
    const int64_t* block_row;  // (num_blocks + 1,) the first row of each block
    const int64_t* begin;      // (num_blocks num_strips + 1,) the first entry of each block's strips
    const uint16_t* unit;      // (nnz,) the unit in its block that each entry is added to
    const uint16_t* source;    // (nnz,) the source in its strip
    const float* weight;       // (nnz,) each of these as in PprGraph
    const uint8_t* edge_type;
    const float* share32;
};

struct PprGraph {
    int64_t num_nodes;
    int64_t num_stored;
    int32_t num_types;
    bool directed;
    const int64_t* indptr;     // (N + 1,)
    const int32_t* indices;    // (nnz,) the stored row of each entry's source
    const float* weight;       // (nnz,) or null: all 1
    const uint8_t* edge_type;  // (nnz,) or null: one type
    const float* share32;      // (nnz,) per_type: scale32 of each entry's source and type; joint: null. A GPU has none
    const double* degree;      // (N, T) weight out of each node, by type
    const int32_t* node_of;    // (N,) the caller's id of each stored row
    const int32_t* row_of;     // (N,) the stored row of each of the caller's ids
    // Rows may be stored in any order: sums over nodes have none. Every table of nodes, and `indices`, is by stored row;
    // entries of a row stand in ascending internal order of their sources. Both null: rows are stored in internal order.
    const int32_t* place;     // (N,) the stored row of each internal node
    const int32_t* internal;  // (N,) the internal node of each stored row
    // The same graph stored so that rows of one length stand side by side, for few lanes on a CPU; or null.
    const PprGraph* by_length;
    const PprSlices* slices;  // of a graph with rows by length, for one lane; else null
    const PprTiles* tiles;    // of a large graph with rows in internal order, for few lanes; else null
    // Derived from degree, once per graph. T' is 1 for joint (types added up in order), T for per_type.
    const double* scale64;    // (N, T') 1 / degree, 0 where the degree is 0
    const float* scale32;     // (N, T') the same rounded; joint: 1 where the degree is 0
    const double* unscale64;  // (N,) joint: the degree, 1 where it is 0; per_type: null
    const float* unscale32;   // (N,) the same rounded
    double volume;            // joint: the sum of all degrees, by its grain; it sets pass limits only
    int64_t longest_row;      // most entries in a row, or out of a node
    int64_t joined_nodes;     // nodes that have entries, in their row or out of them
    // Rows of outgoing edges; read only when `allow` is given for a directed graph (else null).
    const int64_t* out_indptr;
    const int32_t* out_indices;
    const float* out_weight;
    const uint8_t* out_edge_type;
};

struct PprQueries {
    int64_t batch;
    const int64_t* restart_indptr;  // (B + 1,)
    const int32_t* restart_node;    // internal nodes, ascending in a row, none twice
    const double* restart_value;    // > 0; each row has one at least
    const double* damping;          // (B,)
    const double* eta;              // (B, T) or null: all 1
    bool per_type;
    const uint8_t* allow;  // (B, N) or (1, N) by internal node, 0 or 1; or null: all allowed
    bool allow_shared;     // allow is (1, N)
    // Node weights, or null: all 1. Those of a query's other nodes are one number. NODE WEIGHTS says of which range.
    const float* node_weight;      // (B, num_weighted), column j that of node weighted_node[j]
    const int32_t* weighted_node;  // (num_weighted,) internal nodes, none twice
    int64_t num_weighted;
    const float* other_weight;  // (B,) 0 or a power of two
    double tol;
    int64_t max_iter;  // pass limit a query, or 0: from the convergence theory
    int32_t threads;   // >= 1
};

struct PprEvidence {      // each (B,)
    int64_t* iterations;  // passes, the certifying one included
    double* residual;     // L1
    double* bound;        // L1
    uint8_t* converged;
};

struct PprTopk {
    int64_t k;                  // >= 0, at most the number of candidates
    int64_t width;              // >= k, the length of an output row
    const int32_t* candidates;  // (num_candidates,) internal nodes, or null: all
    int64_t num_candidates;
    bool stop_when_proven;
    bool prove_order;     // or else the set alone
    int64_t* ids;         // (B, width) the caller's ids, -1 after counts
    float* scores;        // (B, width) -inf after counts
    int64_t* counts;      // (B,)
    float* score_bounds;  // (B, width) 0 after counts
    uint8_t* proven;      // (B,)
};

}  // namespace hopfuse
