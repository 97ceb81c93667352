// Score fusion: the contract.
//
// For each query: every list is calibrated (hopfuse/calibrate.h), the method turns it into list values, and
// every document of the union gets document_score(its entries, ...) + consensus * [in two lists or
// more]. float32, in the order that the method's header states. The best k by higher score, then lower id.
//
// A method is a struct with list_values and document_score in a header of its own, shared by host and
// device, and a line in HOPFUSE_FUSION_METHODS:
//   list_values(team, value, n, option)              calibrated scores of a list of n >= 1, in place, to list values
//   document_score(entry, held, weight, option)      the document's `held` entries, in list order, to its score
#pragma once

#include "hopfuse/integers.h"

#include "hopfuse/calibrate.h"
#include "hopfuse/fusion/boltzmann.h"
#include "hopfuse/fusion/entry.h"
#include "hopfuse/fusion/linear.h"
#include "hopfuse/fusion/max.h"
#include "hopfuse/fusion/rrf.h"
#include "hopfuse/status.h"

#define HOPFUSE_FUSION_METHODS(X) \
    X(boltzmann, BoltzmannFusion) \
    X(linear, LinearFusion)       \
    X(max, MaxFusion)             \
    X(rrf, RrfFusion)

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

struct FuseArgs {
    int64_t batch;
    int32_t num_lists;
    const FuseList* lists;
    FusionMethod method;
    Calibration calibration;
    Ties ties;
    const float* option;   // what the method's header says
    const float* weights;  // (L,) or (B, L)
    bool weights_shared;
    float consensus;
    int64_t k;
    int64_t* ids;     // (B, k) -1 after counts
    float* scores;    // (B, k) -inf after counts
    int64_t* counts;  // (B,)
    int32_t threads;
};

// One query's list of n scores, in rank order, to the method's list values.
template <class Method, class Team>
HOPFUSE_FN void list_values(const Team& team, const float* scores, int64_t n, Calibration calibration, Ties ties,
                            const float* option, float* value) {
    if (n == 0) return;
    calibrate_list(team, scores, n, calibration, ties, value);
    Method::list_values(team, value, n, option);
}

// The score of a document from its entries in list order.
template <class Method>
HOPFUSE_FN float fused_score(const Entry* entry, int held, const float* weight, const float* option, float consensus) {
    const float score = Method::document_score(entry, held, weight, option);
    return held >= 2 ? score + consensus : score;
}

}  // namespace hopfuse
