// Weighted reciprocal rank fusion (Cormack, Clarke & Buettcher, SIGIR 2009): score = sum_l w_l / (k + rank_l)
// in list order, k = option[0] (60 in the paper), ranks from 1 by position; a list that lacks the document
// adds exactly 0.
#pragma once

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct RrfFusion {
    HOPFUSE_FN void list_values(const float*, int64_t n, const float* option, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = option[0] + static_cast<float>(i + 1);
    }

    HOPFUSE_FN float document_score(const float* value, const bool* present, int lists, const float* weight,
                                    const float*) {
        float score = 0.0f;
        for (int l = 0; l < lists; ++l)
            if (present[l]) score = score + weight[l] / value[l];
        return score;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
