// Local walks: the contract of ppr_topk's lists that are found and proven by pushes, which read only the rows that they need.
// Personalized PageRank itself is defined in hopfuse/ppr.h.
//
// FORMULA  On a symmetric operator (joint, undirected, without `allow`; NODE WEIGHTS below), with P' the transpose of P and r the
//   residual of an estimate x (Andersen, Chung & Lang, "Local graph partitioning using PageRank vectors", FOCS 2006):
//     x* = x + (1 - d) sum_t d^t P'^t r,     x = 0 and r = s at the start
//   A push at u moves (1 - d) r_u to x_u and d r_u w_uv eta_t / deg_u to each r_v, which keeps the sum. Since
//   D^-1 P' D = P has rows that sum to 1, no step raises rho = max r_u / deg_u, and none raises ||r||_1. Hence
//     x_v + (1 - d) r_v  <=  x*_v  <=  x_v + (1 - d) r_v + d reach_v,     reach_v = min(deg_v rho, ||r||_1)
//   and with one step more, q_v = (P' r)_v, which reads row v,
//     x_v + (1 - d) (r_v + d q_v)  <=  x*_v  <=  x_v + (1 - d) (r_v + d q_v) + d^2 reach_v
//   A node that no push has reached has x_v = r_v = 0. If every node that has been reached has been pushed, no other node
//   can be reached, and their scores are 0.
//   Nodes without edges are not walked: such a seed has x*_v = (1 - d) s_v. With S the sum of their s_v, the mass that they
//   lose returns to s, and all scores are divided by 1 - d S.
//
// ORDER OF OPERATIONS (all in float64, in the graph's internal order)
//   deg_v = degree_v for one type; else sum_t eta_t degree_t(v), t ascending, from +0, without eta: eta_t = 1.
//   s_v is the weight of v divided by the sum of weights, which is added in the order of the row. r = s, rho = max s_v / deg_v.
//   A stage has a threshold eps; the front of its first round are the nodes with r_v > eps deg_v, in ascending order. A round
//   takes all t_u = r_u of its front and sets these r_u = 0, x_u = x_u + (1 - d) t_u; then, for the nodes u of the front in
//   ascending order and the entries of row u in their order, r_v = r_v + f w with f = d t_u / deg_u (times eta_t, if given:
//   f (w eta_t)). Entries of weight or eta 0 are skipped. The next front are the nodes that now have r_v > eps deg_v. The
//   stage ends when the front is empty, or before a round that would read more entries than the budget has left.
//   After a stage, rho is its threshold (or the largest r / deg, if the budget ended it), ||r||_1 is what the seeds have minus
//   (1 - d) times all that was taken, both with their rounding, and the proof is tried. The next threshold is rho times
//   PPR_PUSH_STEP, or, from the proof's shortfall f, rho / (1.25 f), limited to rho [PPR_PUSH_LEAST, PPR_PUSH_MOST].
//
// PROOF  k is at most the number of candidates that can have a score: those with edges, and seeds without. Of the candidates
//   whose least score plus 1.25 times the width of its bounds is at least the k-th best least score, the rows are read for q_v,
//   unless that reads more than PPR_PUSH_LOOK of the entries read so far and PPR_PUSH_FREE_LOOK for each of k + 4 candidates,
//   or more than the budget. A node's score is the middle of its bounds. A list is proven when the bounds of its hits are apart
//   from each other (a set: from all others), and all of them from those of other candidates, by more than twice the sum of
//   the parts of the errors that stay: the rounding below, and PPR_WAVERS of a score, so that a list of more hits that float32
//   passes find keeps the order. hopfuse/ppr_proof.h decides. Scores that cannot be told apart are equal if the graph shows
//   that (have_equal_scores); they get one score, and the lower id comes first. Fewer than k hits are proven if no other
//   candidate can be reached. A list with a score that is 0 in float32 is not proven; such a node is no hit.
//
// NODE WEIGHTS  With weights a_v > 0 of all nodes with edges (ppr.h, NODE WEIGHTS), not all of them 1, the operator stays
//   symmetric: P[u, v] = w_uv eta_t a_v / D_u and deg_v = a_v D_v, D_v = sum (w eta_t) a_x over row v, added in its order. D_v
//   needs row v. It is read (and its entries counted) for the seeds at the start, for a node before its first push, and for
//   the candidates of a look. Of other nodes is known: K_v, the sum of (w_uv eta_t) a_u over the pushes that have reached v,
//   those of a node that was pushed before left out, so K_v <= D_v; and D_v <= the degree without node weights, as a <= 1.
//   A push moves f ((w eta_t) a_v) with f = d t_u / D_u. Where r is compared or rho computed, a_v K_v stands for deg_v; where a
//   bound reaches up, a_v times that degree. The next front are the nodes that a round has reached and that have
//   r_v > eps a_v K_v at its end. q_v is known within bounds, from those of D_u; of both bounds of x*_v the narrower counts.
//   A query with a weight of 0, or with D <= PPR_PUSH_LEAST_SUM, is not proven.
//
// ROUNDING  Each contribution, push and seed adds at most one unit roundoff of a sum that is at most 1, and f and deg carry
//   relative errors: the computed r and x are those of an exact walk up to a sum of errors of
//     PPR_UNIT (contributions + 2 pushes + 2 seeds + (2 longest row + 256 types + 8) / (1 - d)),
//   and x*_v differs by no more, because (1 - d) sum_t d^t P'^t does not raise the sum of what it is applied to.
//
// STOP  With `gives_up`, a query is not walked if the rows of its seeds have more than PPR_PUSH_SEEDS of its budget. A query
//   ends when its list is proven; when no further round fits the budget; when ||r||_1 is below the rounding; or, with
//   `gives_up`, when the proof's shortfall, which is about the factor of entries still to be read, says that the budget will
//   not do. An unproven list is that of the last stage, with its bounds.
//
// EVIDENCE  Of x^ = x + (1 - d) r: residual (1 - d) d ||r||_1, bound d ||r||_1 plus rounding; no iterations. Rounds, rows that
//   were pushed, and entries that pushes and looks have read.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/ppr.h"
#include "hopfuse/ppr_certificate.h"
#include "hopfuse/ppr_proof.h"

namespace hopfuse {

constexpr double PPR_PUSH_STEP = 0.35;  // the threshold of the next stage relative to rho, if nothing is known of it
constexpr double PPR_PUSH_LEAST = 0.1;  // the least and the largest such threshold
constexpr double PPR_PUSH_MOST = 0.6;
constexpr double PPR_PUSH_LOOK = 0.5;            // the entries of a look, relative to those read so far,
constexpr double PPR_PUSH_FREE_LOOK = 16.0;      // and those for each of k + 4 candidates, which it may always read
constexpr double PPR_PUSH_SEEDS = 0.125;         // the share of the budget that the rows of a query's seeds may take
constexpr double PPR_PUSH_TRIAL = 0.0625;        // the share of the budget within which no walk gives up
constexpr double PPR_PUSH_UNKNOWN = 4.0;         // the factor of entries expected without a shortfall,
constexpr double PPR_PUSH_TIE = 16.0;            // and with hits that seem tied
constexpr double PPR_PUSH_LEAST_SUM = 0x1p-900;  // the smallest D of a walk with node weights

// The candidates of a graph, with what a proof needs to know of those that no push reaches.
struct PprCandidates {
    int64_t count;                 // of those with edges
    const uint64_t* bits;          // (ceil(N / 64),) by internal node, or null: all nodes
    const double* largest_degree;  // (T,) the largest degree by type among them
};

struct PprPush {
    PprCandidates candidates;
    const int64_t*
        budget;  // (B,) the most entries that each query may read; 0: it is not walked, and its list is empty
    bool gives_up;
};

struct PprPushEvidence {  // each (B,)
    int64_t* rounds;
    int64_t* rows;
    int64_t* entries;
};

// The degree of a node for a query; eta is its row of weights of types, or null.
HOPFUSE_FN double ppr_push_degree(const double* degree, int32_t types, const double* eta) {
    if (types == 1 && eta == nullptr) return degree[0];
    double sum = 0.0;
    for (int32_t t = 0; t < types; ++t) sum += eta == nullptr ? degree[t] : eta[t] * degree[t];
    return sum;
}

// The sum of all errors of a walk's x and r, and of what a look adds.
HOPFUSE_FN double ppr_push_rounding(int64_t contributions, int64_t rows, int64_t seeds, int64_t longest_row,
                                    double damping) {
    constexpr int64_t types = 256, few = 8;  // the most types that a degree sums, and the operations of a push
    const double relative = static_cast<double>(2 * longest_row + types + few) / (1.0 - damping);
    return PPR_UNIT * (static_cast<double>(contributions + 2 * rows + 2 * seeds) + relative);
}

// The threshold of the next stage.
HOPFUSE_FN double ppr_push_threshold(double rho, double shortfall) {
    const double wanted = shortfall < 1e30 ? 1.0 / (1.25 * shortfall) : PPR_PUSH_STEP;
    return rho * (wanted < PPR_PUSH_LEAST ? PPR_PUSH_LEAST : wanted > PPR_PUSH_MOST ? PPR_PUSH_MOST : wanted);
}

}  // namespace hopfuse
