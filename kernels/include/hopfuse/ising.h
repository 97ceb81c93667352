// Ising mean-field reranking: the contract.
//
// FORMULA  For each query, over the n candidates of its list, n at most ISING_CANDIDATES:
//   S_ij = sum over nodes e of w_ie w_je, i != j, S_ii = 0: the shared neighbours of candidates i and j; w_ie is the total
//          weight of the edges between i and e, over all types
//   A_ij = S_ij / sum_k S_ik; a row of zeros if i shares no neighbour. Every other row sums to 1, and the largest
//          eigenvalue of A is 1 (A is similar to the symmetric D^-1/2 S D^-1/2, D the row sums), whatever the graph.
//   h_i  = 2 u_i - 1, u the list's scores by min_max (calibrate.h); 0 if all are equal
//   m_i  = tanh(h_i / T); then `steps` times, every m_i from the m of the previous step:
//          m_i = (1 - relaxation) m_i + relaxation tanh((h_i + J sum_j A_ij m_j) / T)
//   score_i = (1 - blend) h_i + blend m_i, in [-1, 1]
// The mean-field equations of an Ising model in a field, by damped fixed-point iteration: Opper & Saad, "Advanced Mean
// Field Methods", MIT Press 2001, chapter 2. For T > J the fixed point is unique, and a step shrinks the distance to it at
// least by the factor 1 - relaxation (1 - J/T); for T < J, m may keep a sign opposite to its own field's.
//
// ORDER OF OPERATIONS  w_ie in float64, by ascending type; S_ij in float64, e by ascending internal node; row sums by the
//   blocked tree in float64; A_ij = fl32(S_ij / sum). The rest is float32, one rounding per operation; sum_j A_ij m_j by the
//   blocked tree, candidates in the list's order.
// TIES      The best k by higher score, then lower id.
// ALIASING  No output overlaps an input or another output.
// THREADS   Any number gives the same bits.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/calibrate.h"
#include "hopfuse/entries.h"
#include "hopfuse/scalar.h"
#include "hopfuse/status.h"

namespace hopfuse {

constexpr int ISING_CANDIDATES = 1024;  // a block of the tree; the workspace has n^2 numbers

// An undirected graph; the package's types/graph.py defines its arrays.
struct IsingGraph {
    int64_t num_nodes;
    const int64_t* indptr;
    Entries entries;             // columns ascend within a row; a node occurs once per type
    const int32_t* internal_of;  // (N,) the row of a document
};

struct IsingModel {
    float coupling;     // J >= 0
    float temperature;  // T > 0
    float relaxation;   // in (0, 1]
    int32_t steps;      // >= 0
    float blend;        // in [0, 1]
};

struct IsingArgs {
    IsingGraph graph;
    IsingModel model;
    int64_t batch, width;   // width <= ISING_CANDIDATES
    const int64_t* ids;     // (B, width) nodes of the graph, in rank order, distinct within a row
    const float* scores;    // (B, width) finite
    const int64_t* counts;  // (B,)
    int64_t k;
    int64_t* out_ids;     // (B, k) -1 after counts
    float* out_scores;    // (B, k) -inf after counts
    int64_t* out_counts;  // (B,)
    Execution execution;
};

// The total weight of a row's edges to one neighbour; `e` is advanced from its first edge to that of the next neighbour.
HOPFUSE_FN double neighbour_weight(const IsingGraph& graph, int64_t& e, int64_t end) {
    const int32_t node = column_at(graph.entries, e);
    double total = 0.0;
    do {
        total = total + static_cast<double>(weight_at(graph.entries, e));
    } while (++e < end && column_at(graph.entries, e) == node);
    return total;
}

// h of n >= 1 scores in rank order.
template <class Team>
HOPFUSE_FN void ising_field(const Team& team, const float* scores, int64_t n, float* h) {
    const float most = scores[0], least = scores[n - 1];
    if (most == least) return fill(team, h, n, 0.0f);
    calibrate_min_max(team, scores, n, most, least, h);
    team.each(n, [=](int64_t i) { h[i] = 2.0f * h[i] - 1.0f; });
}

// Row i of A from S_ij = shared(j); `raw` is workspace for n numbers.
template <class Team, class Shared>
HOPFUSE_FN void ising_row(const Team& team, int64_t n, double* raw, float* row, Shared shared) {
    const double total = team.sum(n, [=](int64_t j) {
        raw[j] = shared(j);
        return raw[j];
    });
    team.each(n, [=](int64_t j) { row[j] = total > 0.0 ? static_cast<float>(raw[j] / total) : 0.0f; });
}

HOPFUSE_FN float ising_start(const IsingModel& model, float h) { return hf_tanh(h / model.temperature); }

template <class Team>
HOPFUSE_FN float ising_mean(const Team& team, int64_t n, const float* row, const float* m) {
    return team.sum(n, [=](int64_t j) { return row[j] * m[j]; });
}

// m_i after a step, from m_i before it and the mean over its neighbours.
HOPFUSE_FN float ising_step(const IsingModel& model, float h, float m, float mean) {
    const float aligned = hf_tanh((h + model.coupling * mean) / model.temperature);
    return (1.0f - model.relaxation) * m + model.relaxation * aligned;
}

HOPFUSE_FN float ising_score(const IsingModel& model, float h, float m) {
    return (1.0f - model.blend) * h + model.blend * m;
}

}  // namespace hopfuse
