// Linear fusion: score = sum_l w_l c_l in list order, c the calibrated scores; a list that lacks the
// document adds 0.
#pragma once

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct LinearFusion {
    HOPFUSE_FN void list_values(const float* c, int64_t n, const float*, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = c[i];
    }

    HOPFUSE_FN float document_score(const float* value, const bool* present, int lists, const float* weight,
                                    const float*) {
        float score = 0.0f;
        for (int l = 0; l < lists; ++l)
            if (present[l]) score = fmaf(weight[l], value[l], score);
        return score;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
