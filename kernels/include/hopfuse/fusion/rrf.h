// Weighted reciprocal rank fusion (Cormack, Clarke & Buettcher, SIGIR 2009): score = sum_l w_l / (k + rank_l)
// in list order, k = rank_constant (60 in the paper), ranks from 1 by position; a list that lacks the document
// adds exactly 0.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct RrfFusion : Fold<RrfFusion>, ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        team.each(n, [=](int64_t i) { value[i] = option.rank_constant + static_cast<float>(i + 1); });
    }

    HOPFUSE_FN float start() { return 0.0f; }

    HOPFUSE_FN float term(float value, int32_t list, const Union& of) { return of.weight[list] / value; }

    HOPFUSE_FN float add(float score, float term, int32_t, const Union&) { return score + term; }

    HOPFUSE_FN bool rises(const Union&) { return true; }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
