// Maximum fusion, the union rule of the Dice-Soerensen hybrid: score = max over the lists that hold the
// document of (c_l + option[l]), c the calibrated scores, option[l] the bias of list l.
#pragma once

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct MaxFusion {
    HOPFUSE_FN void list_values(const float* c, int64_t n, const float*, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = c[i];
    }

    HOPFUSE_FN float document_score(const float* value, const bool* present, int lists, const float*,
                                    const float* option) {
        float best = 0.0f;
        bool any = false;
        for (int l = 0; l < lists; ++l) {
            if (!present[l]) continue;
            const float biased = value[l] + option[l];
            best = any && best > biased ? best : biased;
            any = true;
        }
        return best;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
