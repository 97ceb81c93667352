// Rank-biased centroids (Bailey, Moffat, Scholer & Thomas, SIGIR 2017): score = sum_l w_l (1 - phi) phi^(rank_l - 1) in
// list order, ranks from 1 by position; a list that lacks the document adds 0. option: ln phi, 1 - phi.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct RbcFusion : WeightedSum<RbcFusion>, ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const float* option) {
        team.each(n, [=](int64_t i) { value[i] = option[1] * hf_exp(static_cast<float>(i) * option[0]); });
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
