// Score fusion: the contract.
//
// For each query: the first of every list, pools[l] at most, are calibrated (hopfuse/calibrate.h), the method turns them
// into list values, and every document of the union gets document_score(its entries, ...) + consensus * [in two lists or
// more], times its prior. float32, in the order that the method's header states. The best k by higher score, then lower
// id.
//
// A method is a struct with list_values and document_score in a header of its own, shared by host and
// device, and a line in HOPFUSE_FUSION_METHODS:
//   list_values(team, value, n, list, option)   calibrated scores of list number `list`, n >= 1, in place, to list values
//   document_score(entry, held, of)             the document's `held` entries, in list order, to its score
// and ByPosition for a base where list values say nothing but the position.
// Most methods are folds (fusion/fold.h), which have document_score of fold.h and take a document's entries one by one.
// Three methods ask for more of a query than its lists one by one: boltzmann for the distance of its lists
// (wasserstein.h), gumbel for their concordance, condorcet for its documents' majorities.
#pragma once

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
    const int64_t* ids;     // (B, width), in rank order, none twice in a row
    const float* scores;    // (B, width)
    const int64_t* counts;  // (B,)
};

// What is done to a document's score at the end.
struct Finish {
    float consensus;     // at least 0; added where two lists or more hold the document
    const float* prior;  // (N,) in [0, 1], what the score of document id is multiplied by; 1 where id >= N
    int64_t priors;      // N, may be 0
};

struct FuseArgs {
    int64_t batch;
    int32_t num_lists;
    const FuseList* lists;
    const int64_t* pools;  // (L,) of a list, so many of its first are taken
    FusionMethod method;
    CalibrationRule calibration;
    const float* option;   // what the method's header says
    const float* weights;  // (L,) or (B, L)
    bool weights_shared;
    Finish finish;
    int64_t k;
    int64_t* ids;     // (B, k) -1 after counts
    float* scores;    // (B, k) -inf after counts
    int64_t* counts;  // (B,)
    int32_t threads;
};

// Whether a method asks how far apart its lists are.
HOPFUSE_FN bool asks_distance(FusionMethod method, const float* option) {
    return method == FusionMethod::boltzmann && option[1] > 0.0f;
}

// One query's list of n calibrated scores to the method's list values; `distance` is that of its lists, 0 where the
// method does not ask.
template <class Team>
HOPFUSE_FN void list_values(const Team& team, FusionMethod method, int64_t n, int32_t list, const float* option,
                            float distance, float* value) {
    if (n == 0) return;
    if (method == FusionMethod::boltzmann)
        return boltzmann_values(team, value, n, option[0], fmaf(option[1], distance, 1.0f));
    switch (method) {
#define HOPFUSE_CASE(name, type) \
    case FusionMethod::name: return type::list_values(team, value, n, list, option);
        HOPFUSE_FUSION_METHODS(HOPFUSE_CASE)
#undef HOPFUSE_CASE
    }
}

// Whether a method asks how far its lists agree on the documents that they share.
HOPFUSE_FN bool asks_concordance(FusionMethod method, const float* option) {
    return method == FusionMethod::gumbel && option[0] == 0.0f;
}

HOPFUSE_FN float copula_theta(FusionMethod method, const Concordance& total, const float* option) {
    return method == FusionMethod::gumbel ? gumbel_theta(total, option) : 1.0f;
}

// The score of a document that `held` lists hold, from the method's.
HOPFUSE_FN float finished_score(float score, int held, int64_t id, const Finish& finish) {
    if (held >= 2) score = score + finish.consensus;
    return id < finish.priors ? score * finish.prior[id] : score;
}

// The score of a document from its entries in list order.
template <class Method>
HOPFUSE_FN float fused_score(const Entry* entry, int held, const Union& of, const Finish& finish) {
    return finished_score(Method::document_score(entry, held, of), held, entry->id, finish);
}

// The threshold algorithm (Fagin, Lotem & Naor, Journal of Computer and System Sciences 66, 2003), for a fold that rises
// (fusion/fold.h) over lists whose terms are at least least_term() and never grow from one position to the next. Where
// the first `depth` documents of every list are seen, an unseen one scores at most unseen_bound(): the method itself, in
// its own operations, over the next term of every list that goes on.
//
// Proof. Let document D be unseen. A list that holds it goes on, and its term there is at most that list's next one. Both
// chains, D's and the bound's, begin with start() and go through the lists in order; by induction D's score is at most
// the bound's after each. Where the list holds D, add() of two numbers that are both at most the bound's is at most the
// bound's. Where it does not, D's score stays and the bound's does not fall, as the term is least_term() or more. D is
// held by at most as many lists as go on, so finish() and consensus keep the order. A prior in [0, 1] leaves a score of
// at least 0 at most as large, and one below 0 at most 0: hence the maximum with 0 where there are priors.
//
// For the same reasons a document's score over some of its entries is at most its score, so the k-th best of such scores
// is at most the k-th best score. Where the bound is below that, no unseen document is among the best k: strictly below,
// for of equal scores the lower id is the better.
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
