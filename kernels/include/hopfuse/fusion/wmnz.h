// WMNZ (Wu & Crestani, CIKM 2002): score = (sum_l c_l) (sum_l w_l), each in list order over the lists that hold the
// document, c the calibrated scores.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct WmnzFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const FusionOptions&) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float scores = 0.0f, weights = 0.0f;
        HOPFUSE_ROLLED
        for (int e = 0; e < held; ++e) {
            scores = scores + entry[e].value;
            weights = weights + of.weight[entry[e].list];
        }
        return scores * weights;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
