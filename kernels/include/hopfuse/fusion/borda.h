// Borda count (Aslam & Montague, SIGIR 2001): score = sum_l w_l points_l in list order. In a union of N documents, the
// document of rank r, from 1, gets N - r + 1 points; one that a list of n lacks gets `missing` (N - n + 1) / 2: the mean of
// the remaining points if `missing` is 1 (BordaFuse), nothing if it is 0.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct BordaFusion : ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions&) {
        team.each(n, [=](int64_t i) { value[i] = static_cast<float>(i); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        const float documents = static_cast<float>(of.documents);
        float score = 0.0f;
        int at = 0;
        HOPFUSE_ROLLED
        for (int32_t l = 0; l < of.lists; ++l) {
            const float before = value_or(entry, held, l, -1.0f, at);
            const float rest = of.option.missing * 0.5f * static_cast<float>(of.documents - length(of, l) + 1);
            score = fmaf(of.weight[l], before < 0.0f ? rest : documents - before, score);
        }
        return score;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
