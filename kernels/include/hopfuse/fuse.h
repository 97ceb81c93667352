// Score fusion: the contract.
//
// For each query: every list is calibrated (hopfuse/calibrate.h), the method turns it into list values, and
// every document of the union gets document_score(values, present, ...) + consensus * [in two lists or
// more]. float32, in the order that the method's header states. The best k by higher score, then lower id.
//
// A method is a struct with list_values and document_score in a header of its own, shared by host and
// device, and a line in HOPFUSE_FUSION_METHODS.
#pragma once

#include <cstdint>

#include "hopfuse/calibrate.h"
#include "hopfuse/fusion/boltzmann.h"
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

}  // namespace hopfuse
