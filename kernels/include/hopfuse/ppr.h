// Batched Personalized PageRank: the contract.
//
// FORMULA  For each query: x = d P' x + (1 - d) s, with P' the transpose of P, s >= 0 normalised to sum 1, 0 <= d < 1.
//   joint     P = rownorm(sum_t eta_t W_t): P[u, v] = w_uv eta_t / deg_u, deg_u = sum_t eta_t deg_t(u)
//   per_type  P = sum_t eta_t rownorm(W_t), sum_t eta_t <= 1
//   allow     the same on the subgraph induced by the allowed nodes (degrees counted inside it).
//   weights   with node weights a_v >= 0 of the query, every w_uv is replaced by w_uv a_v: P[u, v] = w_uv eta_t a_v / D_u with
//             D_u = sum_x w_ux eta_t a_x over the entries out of u; per_type does so in each W_t. On an undirected graph an
//             edge has weight a_u w a_v: the operator stays symmetric, with deg_u = a_u D_u. a_v = 0: v is not allowed.
//   Mass lost at nodes without out-edges, or in rows that sum to less than 1, returns to s. The system is solved
//   without that and normalised to sum 1, which is equivalent (del Corso, Gulli & Romani, "Fast PageRank
//   computation via a sparse linear system", 2005).
//
// NODE WEIGHTS  Only their ratios matter. Those of a query are divided by the smallest power of two that is at least the largest
//   weight, which is exact; weights below 2^-100 times that largest count as 0; the others are rounded to float32 and are
//   then at least PPR_LEAST_WEIGHT and at most 1. The largest is taken over the allowed nodes with entries in the graph;
//   larger weights of other nodes count as 1, because nothing walks to those. kernels/cpu/inputs.h reads them in this way.
//
// ORDER OF OPERATIONS (law 2: an answer depends on the query and the graph alone)
//   State y_u = x_u g_u in float32; joint: g_u = fl(1 / deg_u), or 1 if deg_u = 0; per_type: g = 1.
//   Row v sums its stored entries in ascending internal column (then type), in segments of PPR_SEGMENT entries,
//   each from +0. If `allow` is given, only entries of allowed nodes are counted, so that the edges of other
//   nodes never change a score:
//     joint     acc = fma(fl(w eta_t), y_u, acc)
//     per_type  acc = fma(w, fl(x_u fl(eta_t inv_deg_t(u))), acc)
//   and adds the segments in order to S_v. Then, with gd = fl(g_v fl(d)) and b = fl((1 - d) s_v / deg_v), computed
//   from left to right in float64 with 1 / deg_v rounded (1 if deg_v = 0, and for per_type):
//     z_v = fma(gd, S_v, b)                  (b = +0 if v has no restart)
//     power      y'_v = z_v
//     Chebyshev  y'_v = fma(omega, z_v - y-_v, y-_v), y- the iterate before y; if deg_v = 0,
//                y'_v = z_v
//   With node weights, D is summed like a degree inside `allow`: acc = fma(w, a_x, acc) in float64 over the entries of a type
//   in ascending order, then over types. The state is y_u = x_u fl(1 / D_u), so rows are summed as above; D replaces deg in b
//   and wherever y is converted to x or R; and the factor of a row is g_v = fl(a_v (1 / D_v)), from float64 (a_v if D_v = 0,
//   and for per_type). Values measured for a bound per node, here |z - y|, are first divided by a_v. With all a = 1 the bits
//   are those without weights, and with a of 0 and 1 those of `allow`.
//   Start: y- = 0, y = b. Weights that are all 1 may be implicit: fma(1, y, acc) is acc + y.
//   Chebyshev semi-iteration (Golub & Varga 1961) is used if the operator is symmetric (joint, undirected), power iteration
//   otherwise. With a symmetric operator but too small node weights of nodes that walk (ppr_accelerates), omega = 1 in every
//   pass, which is power iteration.
//
// SUMS over nodes (ppr_sum.h) round each term to the nearest grain, a power of two, ties to even, and add these without
//   further rounding. So a sum does not depend on the order of the nodes, and a node that adds 0 changes nothing. The grain
//   is 2^-50, and a sum of 4 or more counts as infinite. R below, which is a forecast, has its own grain, and so has the
//   volume, the sum of fl(a_v D_v): degrees have no fixed scale, so its grain follows from the largest degree and the number
//   of terms (ppr_volume_anchor). Sums of integers, such as degrees without weights, are thus exact.
//   Guarantee: empty places, which are nodes without edges and restart or nodes that `allow` excludes, change no bit of a
//   query's scores, hits, proof or evidence, whatever their number and position: results are those of the graph without
//   them, whose other nodes keep their order. Bounds depend only on what the query may touch: the most entries that count
//   in a row or out of a node, and the number of nodes with any.
//
// STOP  Pass j (j = 1, 2, ...) measures the residual of the iterate that it read,  R = sum_v fl(deg_v |z_v - y_v|),  of float32
//   terms with grains of 2^-40 times the power of two at or below theta rate (the largest R at the end), rounded to float32.
//   The pass limit K follows from the convergence theory: with
//   rate = (1 + sqrt(1 - d^2)) / d for Chebyshev, 1 / d for power, and start = 4 sqrt(vol) ||s||_{D^-1} / tol, or
//   2 / tol, K = floor(ln(start) / ln(rate)) + 2, float32 logarithms (hf_log), at most 100000 and at most max_iter;
//   K = 1 for d = 0. The iterate that pass j wrote is captured at the first pass from K - K / 4 on for which its residual,
//   estimated as fl(1 / rate) R, is at most theta = (1 - d) tol / 2, or at pass K. This is a forecast; the certificate
//   below is a measurement.
//   The captured iterate is converted to x^, the array that is returned: fl(max(y, 0) deg factor), multiplied
//   from left to right in float64, with factor = 1 / min(sum(max(y, 0) deg), 4). One float64 pass over x^,
//   with rows in the same segments, computes r = d P' x^ + (1 - d + d m) s - x^ (m: lost mass) and the bound ||r||_1 / (1 - d), plus its
//   own rounding. Since r is that of the returned float32 array, the bound includes float32 rounding as it
//   is, not a worst case. While bound > tol (and max_iter did not end the walk), x^ is replaced by
//   fl(x^ + r), a power step in float64, at most 32 times, until tol is met or a step reduces the bound by
//   less than 2 %, which means that float32 cannot hold a better answer.
//
// PROOF  With stop_when_proven, a query that cannot lose mass (a symmetric operator, no restart at a node without edges) is
//   first walked until the float32 residual suggests that its k hits are proven (ppr_proof.h). This is tried after a pass in
//   the middle of the walk, then after as many further passes (at most 8) as the error still needs, both rounded up to a
//   multiple of PPR_TRY_EVERY. Such an iterate is neither clamped nor normalised: its own residual bounds its error.
//   The float64 certificate of x^ and its REFINEMENT decide; a query that these reject, with a bound above tol, is solved to
//   tol.
//   A gap must be at least twice the sum of the two nodes' errors, which include PPR_WAVERS of each score, so that a later
//   iterate, or the rounding of a refined one, keeps the order.
//   Without prove_order only the set of the hits is proven: each of them is above all other nodes. They are listed by the
//   returned scores, so the hits of a smaller k are a subset of those of a larger k, not a prefix.
//   Two hits with equal scores are in proven order if their rows have the same entries that count, their node weights are
//   equal and neither restarts: then their exact scores are equal, and the lower id comes first. With a symmetric operator,
//   their rows may also differ in one node each, if an exchange of the two hits together with these two nodes maps the rows of
//   all four to each other, and these two have equal node weights and no restart either: an exchange that maps the graph and
//   the query to themselves leaves the solution as it is. An empty place has score 0 without proof.
//
// LOCAL BOUNDS  Let rho = D^-1 r. Since D^-1 P' D = P for the symmetric operator, D^-1 (x* - x^) = sum_t d^t P^t rho. P has no
//   negative entry, and no row of it sums to more than 1, so P^t |rho| <= max(P^j |rho|) for t >= j, and
//     |x*_v - x^_v| / deg_v <= sum_{t < j} d^t (P^t |rho|)_v + d^j / (1 - d) max_u (P^j |rho|)_u
//   for any j; j = 0 is the bound per node of a certificate, and j = 1 the local one. Residuals are concentrated at a few nodes
//   (restarts and hubs), so one average over neighbours removes most of the maximum.
//   P is applied in float32 by a pass as above with d = 1, without restart and previous iterate: z_v = fl(g_v S_v). All terms
//   are at least 0, so the computed sum of a row is at least the exact one times 1 - k u, with k the roundings on its longest
//   chain (ppr_pass_loss), except for products that underflow, which lose at most half of float32's smallest number per entry,
//   times g_v <= the largest 1 / deg. An upper bound of the exact average (ppr_average_above) is used from there, together with
//   what |rho| may exceed its float32 form by (ppr_local_bound).
//   With node weights, the state of such a pass is a_v rho_v, and its results are a_v (P rho)_v; losses by underflow are
//   divided by a_v and by D_v. Local bounds and refinement are not used for a query in which factors of rows are subnormal in
//   float32.
//
// REFINEMENT  With stop_when_proven, a list that is still unproven although its bound per node holds gets one step of
//   iterative refinement (Wilkinson 1963), unless max_iter forbids the passes. With r the float64 residual of x^:
//     b_v = fl(r_v / deg_v); y from passes as above with restart b in every row, y- = 0, y = b, and omega = 1 in the first
//     pass, after which Chebyshev's recurrence starts: b is mostly rounding errors of single nodes, which an average removes
//     t_v = fma(y_v, deg_v, x^_v) in float64, h_v = fl(t_v)
//   y is examined after the passes given by ppr_next_check_pass, which counts one more pass. This one measures z - y as in STOP. If
//   errors are less than 8 (a set: 64) times too large, it is the only one, for y = b. By linearity the residual of x^ + D y is
//     D^-1 r(x^ + D y) = D^-1 r(x^) + d P y - y = z - y + (rounding of z: k u (P |y|)_v + underflow) + (D^-1 r(x^) - b)
//   So max |z - y| plus a bound of the parentheses (ppr_corrected_rest) gives the bound per node of x^ + D y, and R, with
//   grains of 2^-50, plus the same for the sum (ppr_corrected_residual) gives ||r||_1. Rounding to h adds PPR_ROUNDED h_v to
//   the former and sum |t_v - h_v| to the L1 bound; the reported residual is ||r||_1 + (1 + d) sum |t_v - h_v|, which that of
//   h cannot exceed. The list is ranked again by h. If it is still unproven, but errors are less than 8 times too large, the
//   local bound of |z - y| is tried, which takes another pass. If the list is proven, or more passes cannot prove it, h is
//   returned; otherwise y continues to the next examination.
//
// TIES      top-k: higher score, then lower id; nodes with score 0 are not hits.
// ALIASING  No output overlaps an input or another output.
// THREADS   The bits do not depend on the number of threads. Thread-safe; the workspace is taken from a pool.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/status.h"

namespace hopfuse {

constexpr int PPR_SEGMENT = 64;  // entries summed sequentially; the GPU's unit of work
constexpr int PPR_TILE = 64;     // rows processed together
constexpr int PPR_SLICE = 8;     // chains of additions that a CPU runs in parallel for a lane
// The smallest share of a restart: no restart is rounded to 0.
constexpr double PPR_LEAST_SHARE = 4.9406564584124654e-324;
constexpr double PPR_LEAST_WEIGHT = 3.944304526105059e-31;  // 2^-101, the smallest node weight above 0
constexpr int PPR_FEW_LANES = 8;               // the most queries at a time that profit from rows by length
constexpr int PPR_TILE_LANES = 4;              // and the most that profit from tiles
constexpr int64_t PPR_CACHED_NODES = 1 << 18;  // the most nodes for which a lane's state (1 MiB) fits a core's L2 cache

// The entries of rows stored by length, longest first, so that PPR_SLICE chains of additions run in parallel. A unit is a
// segment of one of the first `long_rows` rows, or one of the other rows, which have at most one segment. Units are ordered
// longest first, segments before rows; each of the two kinds is padded to whole slices with empty units. A slice has entry 0
// of each of its units, then entry 1 of each, up to the end of the shortest; then the remaining entries of each unit in turn.
struct PprSlices {
    int64_t num_units, segment_units;
    int64_t long_rows;       // a multiple of PPR_SLICE, or N
    const int64_t* indptr;   // (num_units + 1,)
    const int32_t* segment;  // (segment_units,) each segment's number in row order; padding: the number of segments
    const int32_t* row_segments;  // (long_rows + 1,) the first segment of each long row, then the number of segments
    const uint16_t* narrow;       // (nnz,) the stored row of each entry's source, or null if 16 bits are too few
    const int32_t* wide;          // (nnz,) the same in 32 bits if narrow is null, else null
    const float* weight;          // (nnz,) this and the following as in PprGraph
    const uint8_t* edge_type;
    const float* share32;
};

// The entries of a large graph for few lanes on a CPU, ordered so that the data of a tile stays in a cache. Here a unit is a
// segment of a row, and units are in row order. Rows are divided into blocks, each of whole tiles of PPR_TILE rows and at
// most 65,536 units, and sources into strips of `strip` nodes. Entries are sorted by block, strip, source and unit.
struct PprTiles {
    int64_t num_blocks, num_strips;
    int64_t strip;             // at most 65,536
    int64_t most_units;        // in a block
    const int64_t* block_row;  // (num_blocks + 1,) the first row of each block
    const int64_t* begin;      // (num_blocks num_strips + 1,) the first entry of each strip of each block
    const uint16_t* unit;      // (nnz,) the unit of each entry, within its block
    const uint16_t* source;    // (nnz,) the source of each entry, within its strip
    const float* weight;       // (nnz,) this and the following as in PprGraph
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
    const float* share32;      // (nnz,) per_type: scale32 of each entry's source and type; joint, and on a GPU: null
    const double* degree;      // (N, T) weight out of each node, by type
    const int32_t* node_of;    // (N,) the caller's id of each stored row
    const int32_t* row_of;     // (N,) the stored row of each of the caller's ids
    // Rows may be stored in any order, because sums over nodes do not depend on it. All tables of nodes, and `indices`, are
    // by stored row; entries of a row are in ascending internal order of their sources. Both null: internal order.
    const int32_t* place;     // (N,) the stored row of each internal node
    const int32_t* internal;  // (N,) the internal node of each stored row
    // The same graph with rows of equal length adjacent, for few lanes on a CPU; or null.
    const PprGraph* by_length;
    const PprSlices* slices;  // of a graph with rows by length, for few lanes; else null
    const PprTiles* tiles;    // of a large graph with rows in internal order, for few lanes; else null
    // Derived from degree, once per graph. T' is 1 for joint (types summed in order), T for per_type.
    const double* scale64;    // (N, T') 1 / degree, 0 if the degree is 0
    const float* scale32;     // (N, T') the same rounded; joint: 1 if the degree is 0
    const double* unscale64;  // (N,) joint: the degree, 1 if it is 0; per_type: null
    const float* unscale32;   // (N,) the same rounded
    double volume;            // joint: the sum of all degrees, by its grain; used only for pass limits
    int64_t longest_row;      // the most entries in a row, or out of a node
    int64_t joined_nodes;     // the number of nodes with entries, into or out of them
    // Rows of outgoing edges; read only if a directed graph has `allow` or node weights (else null).
    const int64_t* out_indptr;
    const int32_t* out_indices;
    const float* out_weight;
    const uint8_t* out_edge_type;
};

struct PprQueries {
    int64_t batch;
    const int64_t* restart_indptr;  // (B + 1,)
    const int32_t* restart_node;    // internal nodes, strictly ascending within a row
    const double* restart_value;    // > 0; each row has at least one
    const double* damping;          // (B,)
    const double* eta;              // (B, T) or null: all 1
    bool per_type;
    const uint8_t* allow;  // (B, N) or (1, N) by internal node, 0 or 1; or null: all allowed
    bool allow_shared;     // allow is (1, N)
    // Node weights, or null: all 1. All other nodes of a query have one weight. NODE WEIGHTS defines the range.
    const float* node_weight;      // (B, num_weighted), column j for node weighted_node[j]
    const int32_t* weighted_node;  // (num_weighted,) distinct internal nodes
    int64_t num_weighted;
    const float* other_weight;  // (B,) 0 or a power of two
    double tol;
    int64_t max_iter;  // pass limit per query, or 0: from the convergence theory
    Execution execution;
};

struct PprEvidence {      // each (B,)
    int64_t* iterations;  // passes, including the certifying one
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
    bool prove_order;     // otherwise prove only the set
    int64_t* ids;         // (B, width) the caller's ids, -1 after counts
    float* scores;        // (B, width) -inf after counts
    int64_t* counts;      // (B,)
    float* score_bounds;  // (B, width) 0 after counts
    uint8_t* proven;      // (B,)
};

}  // namespace hopfuse
