// The proof that the hits of a query are those of the exact scores: hopfuse/ppr.h, PROOF. Shared by host and device.
//
// A gap must be at least twice the sum of the two errors. Then a later iterate with a smaller error keeps the order, so the
// list of a smaller k is a prefix of that of a larger k, whether proof or tol stopped the query. If only sets are proven, its
// hits are a subset of those of the larger k.
#pragma once

#include "hopfuse/entries.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int64_t PPR_TRY_EVERY = 3;  // proofs are tried only after multiples of this many passes
constexpr int64_t PPR_NEVER = 0x7fffffffffffffff;

HOPFUSE_FN bool is_finite(double value) { return value - value == 0.0; }
HOPFUSE_FN float infinite32() { return bits_to_float(0x7f800000u); }
HOPFUSE_FN double infinite64() { return static_cast<double>(infinite32()); }

// The float32 number after the nearest one, for a bound that is at least 0.
HOPFUSE_FN float round_above(double bound) {
    const float value = static_cast<float>(bound);
    return value < infinite32() ? bits_to_float(float_to_bits(value) + 1u) : value;
}

// An error bound of the form |x_v - x*_v| <= (per_degree + local_v) deg_v + flat + relative x_v, where local_v >= 0 is
// specific to the node.
struct NodeError {
    double per_degree;
    double flat;
    double relative;
};

// The part of an error that more passes shrink, and the part that they do not.
struct ErrorParts {
    double shrinks, stays;
};

HOPFUSE_FN ErrorParts error_parts(NodeError error, double local, double degree, double score) {
    const double share = error.per_degree + local;
    return ErrorParts{share == 0.0 ? 0.0 : share * degree * (1.0 + 1e-6), error.flat + error.relative * score};
}

HOPFUSE_FN double node_error(NodeError error, double local, double degree, double score) {
    const ErrorParts parts = error_parts(error, local, degree, score);
    return parts.shrinks + parts.stays;
}

// The relative variation of scores between float32 iterates near the limit; every proof of an order allows for it.
constexpr double PPR_WAVERS = 2.384185791015625e-7;

// The error that a proof uses.
HOPFUSE_FN NodeError error_to_outlast(NodeError error) {
    return NodeError{error.per_degree, error.flat, error.relative > PPR_WAVERS ? error.relative : PPR_WAVERS};
}

// The stored entries of a graph, as seen by a query: mask[source * stride] is 0 for sources that the query excludes; null: none.
struct QueryRows {
    const int64_t* indptr;
    Entries entries;
    const uint8_t* edge_type;
    const float* mask;
    int64_t stride;
};

// The first entry from `e` on that counts, or `end`.
HOPFUSE_FN int64_t next_entry(const QueryRows& rows, int64_t e, int64_t end) {
    while (rows.mask != nullptr && e < end && rows.mask[column_at(rows.entries, e) * rows.stride] == 0.0f) ++e;
    return e;
}

// Whether a row has entries that count. A node without any that does not restart has score 0.
HOPFUSE_FN bool has_entries(const QueryRows& rows, int64_t row) {
    if (rows.mask != nullptr && rows.mask[row * rows.stride] == 0.0f) return false;
    return next_entry(rows, rows.indptr[row], rows.indptr[row + 1]) < rows.indptr[row + 1];
}

// Whether two rows have the same entries.
HOPFUSE_FN bool have_equal_entries(const QueryRows& rows, int64_t row, int64_t other) {
    const int64_t end = rows.indptr[row + 1], other_end = rows.indptr[other + 1];
    int64_t a = next_entry(rows, rows.indptr[row], end), b = next_entry(rows, rows.indptr[other], other_end);
    while (a < end && b < other_end) {
        if (column_at(rows.entries, a) != column_at(rows.entries, b)) return false;
        if (weight_at(rows.entries, a) != weight_at(rows.entries, b)) return false;
        if (rows.edge_type != nullptr && rows.edge_type[a] != rows.edge_type[b]) return false;
        a = next_entry(rows, a + 1, end);
        b = next_entry(rows, b + 1, other_end);
    }
    return a == end && b == other_end;
}

// An exchange of node a with b, and of c with d.
struct Exchange {
    int64_t a, b, c, d;

    HOPFUSE_MEMBER int64_t of(int64_t node) const {
        return node == a ? b : node == b ? a : node == c ? d : node == d ? c : node;
    }
    // Whether the pairs are apart, or the same pair.
    HOPFUSE_MEMBER bool is_one() const {
        const bool is_same = (c == b && d == a) || (c == a && d == b);
        return is_same || (c != d && c != a && c != b && d != a && d != b);
    }
};

// The first entry from `e` on that counts and, with only < 0, whose source is not exchanged, else whose source is `only`.
HOPFUSE_FN int64_t next_entry_of(const QueryRows& rows, int64_t e, int64_t end, const Exchange& exchange,
                                 int64_t only) {
    for (e = next_entry(rows, e, end); e < end; e = next_entry(rows, e + 1, end)) {
        const int64_t source = column_at(rows.entries, e);
        if (only < 0 ? exchange.of(source) == source : only == source) break;
    }
    return e;
}

// Whether an exchange makes entries of `row` those of its image: with only < 0 those whose sources are not exchanged, else
// those of `only`.
HOPFUSE_FN bool exchanges_entries(const QueryRows& rows, const Exchange& exchange, int64_t row, int64_t only) {
    const int64_t other = exchange.of(row), image = only < 0 ? only : exchange.of(only);
    const int64_t end = rows.indptr[row + 1], other_end = rows.indptr[other + 1];
    int64_t a = next_entry_of(rows, rows.indptr[row], end, exchange, only);
    int64_t b = next_entry_of(rows, rows.indptr[other], other_end, exchange, image);
    while (a < end && b < other_end) {
        if (only < 0 && column_at(rows.entries, a) != column_at(rows.entries, b)) return false;
        if (weight_at(rows.entries, a) != weight_at(rows.entries, b)) return false;
        if (rows.edge_type != nullptr && rows.edge_type[a] != rows.edge_type[b]) return false;
        a = next_entry_of(rows, a + 1, end, exchange, only);
        b = next_entry_of(rows, b + 1, other_end, exchange, image);
    }
    return a == end && b == other_end;
}

// The sources at which two rows first differ, or -1 at the end of a row: from the first entry on (step 1) or from the last
// (step -1).
struct Unlike {
    int64_t source, other;
};

HOPFUSE_FN Unlike first_unlike(const QueryRows& rows, int64_t row, int64_t other, int64_t step) {
    const int64_t begin = rows.indptr[row], end = rows.indptr[row + 1];
    const int64_t other_begin = rows.indptr[other], other_end = rows.indptr[other + 1];
    for (int64_t a = step > 0 ? begin : end - 1, b = step > 0 ? other_begin : other_end - 1;; a += step, b += step) {
        while (a >= begin && a < end && next_entry(rows, a, a + 1) != a) a += step;
        while (b >= other_begin && b < other_end && next_entry(rows, b, b + 1) != b) b += step;
        const int64_t source = a >= begin && a < end ? column_at(rows.entries, a) : -1;
        const int64_t source_of_other = b >= other_begin && b < other_end ? column_at(rows.entries, b) : -1;
        if (source != source_of_other || source < 0) return Unlike{source, source_of_other};
    }
}

// Whether neither of two nodes restarts and their node weights are equal. `query` has restarts(row) and node_weight(row).
template <class Query>
HOPFUSE_FN bool are_alike(const Query& query, int64_t row, int64_t other) {
    return !query.restarts(row) && !query.restarts(other) && query.node_weight(row) == query.node_weight(other);
}

// Whether an exchange maps a symmetric graph and a query to themselves, if a and b are alike. Nodes that are exchanged then
// have equal scores.
template <class Query>
HOPFUSE_FN bool is_symmetry(const QueryRows& rows, const Query& query, const Exchange& exchange) {
    if (exchange.c < 0 || exchange.d < 0 || !exchange.is_one() || !are_alike(query, exchange.c, exchange.d))
        return false;
    HOPFUSE_ROLLED for (int i = 0; i < 10; ++i) {
        const int part = i % 5;
        const int64_t only = part == 0   ? -1
                             : part == 1 ? exchange.a
                             : part == 2 ? exchange.b
                             : part == 3 ? exchange.c
                                         : exchange.d;
        if (!exchanges_entries(rows, exchange, i < 5 ? exchange.a : exchange.c, only)) return false;
    }
    return true;
}

// Whether the graph's entries show that two nodes have equal exact scores, so that their order by id is exact: their rows are
// equal or, if the graph is symmetric, become so by an exchange of the two nodes and of the one node in each row that the other
// lacks.
template <class Query>
HOPFUSE_FN bool have_equal_scores(const QueryRows& rows, const Query& query, int64_t row, int64_t other,
                                  bool symmetric) {
    if (!are_alike(query, row, other)) return false;
    if (have_equal_entries(rows, row, other)) return true;
    HOPFUSE_ROLLED for (int64_t step = 1; symmetric && step >= -1; step -= 2) {
        const int64_t lacking = first_unlike(rows, row, other, step).source;
        const int64_t lacking_of_other = first_unlike(rows, row, other, -step).other;
        if (is_symmetry(rows, query, Exchange{row, other, lacking, lacking_of_other})) return true;
    }
    return false;
}

// The error forecast from the largest |z - y| of a pass.
HOPFUSE_FN NodeError forecast_error(float largest, double damping) {
    const double gap = 0.9 * (1.0 - damping);
    return NodeError{static_cast<double>(largest) / gap, 0.0, 0.0};
}

// How far a list is from being proven: the factor by which the errors that more passes shrink must still shrink.
struct ListProof {
    double shortfall;  // below 1: the list is proven; infinity: a tie, or unknown
    double least;      // candidates outside the list must be below this
    bool open;         // whether candidates outside the list must be checked, too
    bool tied;         // whether some of them have the score of the list's last hit
};

// The factor by which the shrinking part of an error must shrink for a gap to exceed the whole error; infinity if shrinking
// cannot help.
HOPFUSE_FN double proof_ratio(ErrorParts error, double gap) {
    const double room = gap - error.stays;
    if (room > 0.0) return error.shrinks / room;
    return error.shrinks > error.stays && error.stays > 0.0 ? 2.0 * error.shrinks / error.stays : infinite64();
}

// The error that a gap between two scores must exceed.
HOPFUSE_FN ErrorParts between(ErrorParts a, ErrorParts b) {
    return ErrorParts{2.0 * (a.shrinks + b.shrinks), 2.0 * (a.stays + b.stays)};
}

// The team that proves a list by one thread. A device's team is a block.
struct LoneProver : Alone {
    HOPFUSE_MEMBER double least(double mine) const { return mine; }
};

// A hit with its error.
struct ListedHit {
    double score;
    ErrorParts error;

    HOPFUSE_MEMBER double least() const { return score - 2.0 * (error.shrinks + error.stays); }
};

template <class List>
HOPFUSE_FN ListedHit listed_hit(const List& list, int64_t i, NodeError error) {
    const double score = static_cast<double>(list.score(i));
    return ListedHit{score, error_parts(error, list.local(i), list.degree(i), score)};
}

// The order: each hit is above the next, and the last above the first node left out.
template <class List, class Team>
HOPFUSE_FN ListProof prove_order(const List& list, int64_t k, int64_t found, NodeError error, const Team& team) {
    double shortfall = 0.0, least = infinite64();
    ListedHit above = {0.0, {0.0, 0.0}};
    int64_t known = 0;  // the hit below `above`
    team.each(found, [&](int64_t i) {
        if (known != i) above = listed_hit(list, i - 1, error);
        const ListedHit own = listed_hit(list, i, error);
        const bool is_first = i == 0 || (own.score == above.score && list.are_twins(i));
        const double order = is_first ? 0.0 : proof_ratio(between(above.error, own.error), above.score - own.score);
        const double positive = i < k ? proof_ratio(own.error, own.score) : 0.0;
        shortfall = order > shortfall ? order : shortfall;
        shortfall = positive > shortfall ? positive : shortfall;
        if (i == (found < k ? found : k) - 1) least = own.least();
        above = own;
        known = i + 1;
    });
    return ListProof{-team.least(-shortfall), team.least(least), false, false};
}

// The set: each hit is above the first node left out, or equal to it with the same entries.
template <class List, class Team>
HOPFUSE_FN ListProof prove_set(const List& list, int64_t k, int64_t found, NodeError error, const Team& team) {
    const bool is_cut = found > k;
    const ListedHit below = is_cut ? listed_hit(list, k, error) : ListedHit{0.0, {0.0, 0.0}};
    const int64_t kept = found < k ? found : k;
    double apart = 0.0;  // hits that are not equal to the first node left out
    if (is_cut) {
        team.each(kept, [&](int64_t i) {
            const bool equal = static_cast<double>(list.score(i)) == below.score && list.are_twins(i + 1);
            if (!equal) apart = static_cast<double>(i + 1);
        });
        apart = -team.least(-apart);
    }
    double shortfall = 0.0, least = infinite64();
    team.each(kept, [&](int64_t i) {
        const ListedHit own = listed_hit(list, i, error);
        const bool is_apart = static_cast<double>(i) < apart;
        const double gap = is_apart ? proof_ratio(between(own.error, below.error), own.score - below.score) : 0.0;
        const double positive = proof_ratio(own.error, own.score);
        shortfall = gap > shortfall ? gap : shortfall;
        shortfall = positive > shortfall ? positive : shortfall;
        least = own.least() < least ? own.least() : least;
    });
    return ListProof{-team.least(-shortfall), team.least(least), false, false};
}

// Proves a list's set and, if `order`, its order. The list has score(i), local(i), degree(i) and are_twins(i) (whether hit i
// and the previous one have equal entries and no restart) for i < found, best first; found <= k + 1. `is_all`, used if
// found < k: every candidate with entries or a restart is a hit. `team` (scalar.h) also has least(double).
template <class List, class Team>
HOPFUSE_FN ListProof prove_list(const List& list, int64_t k, int64_t found, int64_t candidates, bool is_all,
                                NodeError error, bool order, const Team& team) {
    const int64_t kept = found < k ? found : k;
    // Fewer than k hits are proven only if the graph implies that every other candidate has score 0; no bound can show that a
    // score is exactly 0.
    const bool usable = is_finite(error.per_degree) && is_finite(error.flat) && (kept == k || is_all);
    if (!usable) return ListProof{infinite64(), 0.0, false, false};
    ListProof proof = order ? prove_order(list, k, found, error, team) : prove_set(list, k, found, error, team);
    proof.open = proof.shortfall < 1.0 && kept == k && candidates > k;
    proof.tied = found > k && !(list.score(k) < list.score(k - 1));
    return proof;
}

// An upper bound of candidates outside a list, from the float32 maximum of x_v + 2 ((per_degree + local_v) deg_v + flat): adds
// 2 relative x_v and a few roundings.
HOPFUSE_FN double outside_reach(float largest, NodeError error) {
    return static_cast<double>(largest) * (1.0 + 1e-6 + 2.0 * error.relative);
}

// The shortfall assumed if a candidate outside the list prevents the proof, for which the exact one is unknown.
constexpr double PPR_OUTSIDE_SHORTFALL = 2.0;

// The pass after which a proof due at `due` is tried, so that lanes of a block rank together.
HOPFUSE_FN int64_t proof_at(int64_t due) { return (due + PPR_TRY_EVERY - 1) / PPR_TRY_EVERY * PPR_TRY_EVERY; }

// The pass after which a proof is first tried: half of the walk usually brings the error below the gaps of the best hits.
HOPFUSE_FN int64_t first_proof(int64_t limit) { return proof_at(1 + limit / 2); }

// The pass after which to try again: as many passes later as shrink the error by the shortfall, at most 8.
HOPFUSE_FN int64_t next_proof(int64_t pass, double shortfall, double decay) {
    constexpr double longest_wait = 8.0;
    const double lacking = shortfall < 1e30 ? static_cast<double>(hf_log(static_cast<float>(shortfall))) : 70.0;
    const double passes = lacking / decay;
    return proof_at(pass + 1 + static_cast<int64_t>(passes < longest_wait ? passes : longest_wait));
}

}  // namespace hopfuse
