// When the hits of a query are proven to be those of the exact scores: hopfuse/ppr.h, PROOF. Shared by host and device.
//
// A gap must be twice the sum of the two errors: then a later iterate with a smaller error keeps the order, so a list for
// a smaller k is a prefix of the list for a larger one whether proof or tol stopped the query.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int64_t PPR_FIRST_TRY = 3;  // the first pass after which a proof is tried
constexpr int64_t PPR_NEVER = 0x7fffffffffffffff;

HOPFUSE_FN bool is_finite(double value) { return value - value == 0.0; }
HOPFUSE_FN float infinite32() { return bits_to_float(0x7f800000u); }
HOPFUSE_FN double infinite64() { return static_cast<double>(infinite32()); }

// The float32 above a bound that is at least 0.
HOPFUSE_FN float round_above(double bound) {
    const float value = static_cast<float>(bound);
    return value < infinite32() ? bits_to_float(float_to_bits(value) + 1u) : value;
}

// An error bound of the form |x_v - x*_v| <= per_degree deg_v + flat + relative x_v.
struct NodeError {
    double per_degree;
    double flat;
    double relative;
};

HOPFUSE_FN double node_error(NodeError error, double degree, double score) {
    const double flat = error.flat + error.relative * score;
    if (error.per_degree == 0.0) return flat;
    return error.per_degree * degree * (1.0 + 1e-6) + flat;
}

// The stored entries of a graph, as a query counts them: `mask` is null, or 0 for each source that the query excludes, at
// mask[source * stride].
struct QueryRows {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const float* mask;
    int64_t stride;
};

// The first entry from `e` on, before `end`, that counts.
HOPFUSE_FN int64_t next_entry(const QueryRows& rows, int64_t e, int64_t end) {
    while (rows.mask != nullptr && e < end && rows.mask[rows.indices[e] * rows.stride] == 0.0f) ++e;
    return e;
}

// Whether a row has entries that count. A node without them that does not restart has the score 0.
HOPFUSE_FN bool has_entries(const QueryRows& rows, int64_t row) {
    if (rows.mask != nullptr && rows.mask[row * rows.stride] == 0.0f) return false;
    return next_entry(rows, rows.indptr[row], rows.indptr[row + 1]) < rows.indptr[row + 1];
}

// Whether two rows have the same entries. Such nodes, if neither restarts, have equal exact scores, whatever the graph:
// their order by id is the exact order.
HOPFUSE_FN bool have_equal_entries(const QueryRows& rows, int64_t row, int64_t other) {
    const int64_t end = rows.indptr[row + 1], other_end = rows.indptr[other + 1];
    int64_t a = next_entry(rows, rows.indptr[row], end), b = next_entry(rows, rows.indptr[other], other_end);
    while (a < end && b < other_end) {
        if (rows.indices[a] != rows.indices[b]) return false;
        if (rows.weight != nullptr && rows.weight[a] != rows.weight[b]) return false;
        if (rows.edge_type != nullptr && rows.edge_type[a] != rows.edge_type[b]) return false;
        a = next_entry(rows, a + 1, end);
        b = next_entry(rows, b + 1, other_end);
    }
    return a == end && b == other_end;
}

// The error that the largest |z - y| of a pass forecasts.
HOPFUSE_FN NodeError forecast_error(float largest, double damping) {
    const double gap = 0.9 * (1.0 - damping);
    return NodeError{static_cast<double>(largest) / gap, 0.0, 0.0};
}

// How far a list's own gaps are from proof: the largest ratio of what a gap must be to what it is.
struct ListProof {
    double shortfall;  // below 1 is proof of the list's order; infinity: a tie, or nothing can be said
    bool open;         // candidates outside the list must be looked at too
    bool tied;         // among them some with the score of the list's last hit
};

HOPFUSE_FN double proof_ratio(double needed, double gap) { return gap > 0.0 ? needed / gap : infinite64(); }

// `list.score(i)`, `list.degree(i)` and `list.are_twins(i)`, whether hit i and the one before it have equal entries and no
// restart, for i < found, the best first; found <= k + 1. `is_all`, read where found < k: every candidate that has entries
// or restarts is a hit.
template <class List>
HOPFUSE_FN ListProof prove_list(const List& list, int64_t k, int64_t found, int64_t candidates, bool is_all,
                                NodeError error) {
    const int64_t kept = found < k ? found : k;
    // Fewer hits than asked for are proven only where every other candidate has the score 0 by the graph: that a score is
    // exactly 0 is not for a bound to say.
    const bool usable = is_finite(error.per_degree) && is_finite(error.flat) && (kept == k || is_all);
    if (!usable) return ListProof{infinite64(), false, false};
    double worst = 0.0, above = 0.0, error_above = 0.0;
    for (int64_t i = 0; i < kept; ++i) {
        const double score = static_cast<double>(list.score(i)), mine = node_error(error, list.degree(i), score);
        const bool is_first = i == 0 || (score == above && list.are_twins(i));
        const double order = is_first ? 0.0 : proof_ratio(2.0 * (error_above + mine), above - score);
        const double positive = proof_ratio(mine, score);
        worst = order > worst ? order : worst;
        worst = positive > worst ? positive : worst;
        above = score;
        error_above = mine;
    }
    const bool tied = found > k && !(list.score(k) < list.score(k - 1));
    if (tied && !list.are_twins(k)) worst = infinite64();
    return ListProof{worst, worst < 1.0 && kept == k && candidates > k, tied};
}

// The largest x_v + 2 (per_degree deg_v + flat) of float32, with 2 relative x_v and the few roundings of it all.
HOPFUSE_FN double outside_reach(float largest, NodeError error) {
    return static_cast<double>(largest) * (1.0 + 1e-6 + 2.0 * error.relative);
}

// Whether a hit's score is safely above all that candidates outside the list can reach.
HOPFUSE_FN bool proven_against(double last_score, double last_error, double outside) {
    return last_score - 2.0 * last_error > outside;
}

// How many times smaller the errors must be is not known where the outside refuses; twice is a fair next try.
constexpr double PPR_OUTSIDE_SHORTFALL = 2.0;

// The pass to try again after: as many passes as shrink the error by what is lacking, at most 8.
HOPFUSE_FN int64_t next_proof(int64_t pass, double shortfall, double decay) {
    constexpr double longest_wait = 8.0;
    const double lacking = shortfall < 1e30 ? static_cast<double>(hf_log(static_cast<float>(shortfall))) : 70.0;
    const double passes = lacking / decay;
    return pass + 1 + static_cast<int64_t>(passes < longest_wait ? passes : longest_wait);
}

}  // namespace hopfuse
