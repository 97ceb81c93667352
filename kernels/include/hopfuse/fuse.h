// Score fusion: the contract.
//
// For each query, the first pools[l] hits of each list are calibrated (hopfuse/calibrate.h), and the method converts them to
// list values. Every document of the union gets document_score(its entries, ...) + consensus * [in two lists or more], times
// its prior. All in float32, in the order that the method's header states. The best k: higher score first, then lower id.
//
// A method is a struct with list_values and document_score in its own header, shared by host and device, and a line in
// HOPFUSE_FUSION_METHODS:
//   list_values(team, value, n, list, option)   converts calibrated scores of list number `list`, n >= 1, in place
//   document_score(entry, held, of)             the score of a document from its `held` entries, in list order
// Its base is ByPosition if list values depend only on the position. Most methods are folds (fusion/fold.h), which take a
// document's entries one by one. Three methods need more of a query than its separate lists: boltzmann the distance of its
// lists (wasserstein.h), gumbel their concordance, condorcet the majorities of its documents.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/calibrate.h"
#include "hopfuse/fusion/boltzmann.h"
#include "hopfuse/fusion/borda.h"
#include "hopfuse/fusion/comb_anz.h"
#include "hopfuse/fusion/comb_med.h"
#include "hopfuse/fusion/comb_min.h"
#include "hopfuse/fusion/comb_mnz.h"
#include "hopfuse/fusion/condorcet.h"
#include "hopfuse/fusion/entry.h"
#include "hopfuse/fusion/fold.h"
#include "hopfuse/fusion/gumbel.h"
#include "hopfuse/fusion/isr.h"
#include "hopfuse/fusion/linear.h"
#include "hopfuse/fusion/log_linear.h"
#include "hopfuse/fusion/max.h"
#include "hopfuse/fusion/plackett_luce.h"
#include "hopfuse/fusion/power_mean.h"
#include "hopfuse/fusion/quantum.h"
#include "hopfuse/fusion/rbc.h"
#include "hopfuse/fusion/rrf.h"
#include "hopfuse/fusion/tsallis.h"
#include "hopfuse/fusion/wasserstein.h"
#include "hopfuse/fusion/wmnz.h"
#include "hopfuse/status.h"

#define HOPFUSE_FUSION_METHODS(X)        \
    X(boltzmann, BoltzmannFusion)        \
    X(linear, LinearFusion)              \
    X(max, MaxFusion)                    \
    X(rrf, RrfFusion)                    \
    X(comb_mnz, CombMnzFusion)           \
    X(comb_anz, CombAnzFusion)           \
    X(comb_min, CombMinFusion)           \
    X(comb_med, CombMedFusion)           \
    X(isr, IsrFusion)                    \
    X(borda, BordaFusion)                \
    X(rbc, RbcFusion)                    \
    X(log_linear, LogLinearFusion)       \
    X(power_mean, PowerMeanFusion)       \
    X(tsallis, TsallisFusion)            \
    X(quantum, QuantumFusion)            \
    X(plackett_luce, PlackettLuceFusion) \
    X(gumbel, GumbelFusion)              \
    X(condorcet, CondorcetFusion)        \
    X(wmnz, WmnzFusion)

namespace hopfuse {

enum class FusionMethod : int {
#define HOPFUSE_ENUM(name, type) name,
    HOPFUSE_FUSION_METHODS(HOPFUSE_ENUM)
#undef HOPFUSE_ENUM
};

struct FuseList {
    int64_t width;
    const int64_t* ids;     // (B, width), in rank order, distinct within a row
    const float* scores;    // (B, width)
    const int64_t* counts;  // (B,)
};

// The last steps of a document's score.
struct Finish {
    float consensus;     // at least 0; added if two lists or more hold the document
    const float* prior;  // (N,) in [0, 1], the factor of document id; 1 if id >= N
    int64_t priors;      // N, may be 0
};

struct FuseArgs {
    int64_t batch;
    int32_t num_lists;
    const FuseList* lists;
    const int64_t* pools;  // (L,) the number of first hits to use of each list
    FusionMethod method;
    CalibrationRule calibration;
    FusionOptions option;
    const float* weights;  // (L,) or (B, L)
    bool weights_shared;
    Finish finish;
    int64_t k;
    int64_t* ids;     // (B, k) -1 after counts
    float* scores;    // (B, k) -inf after counts
    int64_t* counts;  // (B,)
    Execution execution;
};

// Whether a method uses the distance of its lists.
HOPFUSE_FN bool asks_distance(FusionMethod method, const FusionOptions& option) {
    return method == FusionMethod::boltzmann && option.wasserstein > 0.0f;
}

// Converts one query's list of n calibrated scores to the method's list values; `distance` is that of its lists, 0 if the
// method does not use it.
template <class Team>
HOPFUSE_FN void list_values(const Team& team, FusionMethod method, int64_t n, int32_t list, const FusionOptions& option,
                            float distance, float* value) {
    if (n == 0) return;
    if (method == FusionMethod::boltzmann)
        return boltzmann_values(team, value, n, option.temperature, fmaf(option.wasserstein, distance, 1.0f));
    switch (method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: return type::list_values(team, value, n, list, option);
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
}

// Whether a method uses the concordance of its lists on the documents that they share.
HOPFUSE_FN bool asks_concordance(FusionMethod method, const FusionOptions& option) {
    return method == FusionMethod::gumbel && option.theta == 0.0f;
}

HOPFUSE_FN float copula_theta(FusionMethod method, const Concordance& total, const FusionOptions& option) {
    return method == FusionMethod::gumbel ? gumbel_theta(total, option) : 1.0f;
}

// The final score of a document that `held` lists hold, from the method's score.
HOPFUSE_FN float finished_score(float score, int held, int64_t id, const Finish& finish) {
    if (held >= 2) score = score + finish.consensus;
    return id < finish.priors ? score * finish.prior[id] : score;
}

// The score of a document from its entries in list order.
template <class Method>
HOPFUSE_FN float fused_score(const Entry* entry, int held, const Union& of, const Finish& finish) {
    return finished_score(Method::document_score(entry, held, of), held, entry->id, finish);
}

// The threshold algorithm (Fagin, Lotem & Naor, Journal of Computer and System Sciences 66, 2003), for a monotone fold
// (fusion/fold.h) over lists whose terms are at least least_term() and non-increasing. After the first `depth` documents of
// every list, an unseen document scores at most unseen_bound(): the method itself, with its own operations, over the next
// term of every list that is not exhausted.
//
// Proof. Let document D be unseen. A list that holds D is not exhausted, and D's term there is at most the list's next term.
// The chains of operations of D and of the bound both begin with start() and visit the lists in order; by induction D's
// value is at most the bound's after each list. If the list holds D, both arguments of add() are at most those of the
// bound, and so is the result. If it does not, D's value is unchanged and the bound's does not fall, because the term is at
// least least_term(). D is held by at most as many lists as are not exhausted, so finish() and consensus keep the order. A
// prior in [0, 1] does not raise a score of at least 0, and raises one below 0 to at most 0: hence the maximum with 0 if
// there are priors.
//
// For the same reasons a document's score over a subset of its entries is at most its score, so the k-th best of such
// partial scores is at most the k-th best score. If the bound is strictly below that, no unseen document is among the best
// k; strictly, because a tie goes to the lower id.
//
// lists: count(l) and term(l, i).
template <class Method, class Lists>
HOPFUSE_FN float unseen_bound(const Lists& lists, int64_t depth, const Union& of, const Finish& finish) {
    float score = Method::start();
    int held = 0;
    for (int32_t l = 0; l < of.lists; ++l) {
        if (lists.count(l) <= depth) continue;
        score = Method::add(score, lists.term(l, depth), l, of);
        ++held;
    }
    score = Method::finish(score, held, of);
    if (held >= 2) score = score + finish.consensus;
    return finish.priors > 0 && score < 0.0f ? 0.0f : score;
}

}  // namespace hopfuse
