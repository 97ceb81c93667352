// Weighted reciprocal rank fusion (Cormack, Clarke & Buettcher, SIGIR 2009): score = sum_l w_l / (k + rank_l)
// in list order, k = option[0] (60 in the paper), ranks from 1 by position; a list that lacks the document
// adds exactly 0.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct RrfFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const float* option) {
        team.each(n, [=](int64_t i) { value[i] = option[0] + static_cast<float>(i + 1); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float score = 0.0f;
        HOPFUSE_ROLLED
        for (int e = 0; e < held; ++e) score = score + of.weight[entry[e].list] / entry[e].value;
        return score;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
