// Rank-biased centroids (Bailey, Moffat, Scholer & Thomas, SIGIR 2017): score = sum_l w_l (1 - phi) phi^(rank_l - 1) in
// list order, ranks from 1 by position; a list that lacks the document adds 0. Options: log_phi, one_minus_phi.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct RbcFusion : WeightedSum<RbcFusion>, ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        team.each(n,
                  [=](int64_t i) { value[i] = option.one_minus_phi * hf_exp(static_cast<float>(i) * option.log_phi); });
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
