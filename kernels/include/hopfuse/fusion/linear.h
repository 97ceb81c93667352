// Linear fusion: score = sum_l w_l c_l in list order, c the calibrated scores; a list that lacks the
// document adds 0.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct LinearFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const float*) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        return weighted_sum(entry, held, of.weight);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
