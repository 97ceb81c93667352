// Inverse square rank (Mourao, Martins & Magalhaes, Computerized Medical Imaging and Graphics 39, 2015):
// score = by_holders[h] * sum_l w_l / rank_l^2 in list order, ranks from 1 by position, h the number of lists that hold the
// document. by_holders[h]: h for ISR, ln(h + sigma) for logISR.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct IsrFusion : WeightedSumByHolders<IsrFusion>, ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions&) {
        team.each(n, [=](int64_t i) {
            const float rank = static_cast<float>(i + 1);
            value[i] = 1.0f / (rank * rank);
        });
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
