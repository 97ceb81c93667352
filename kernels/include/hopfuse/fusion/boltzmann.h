// Boltzmann fusion (PhaseGraph). p: calibrated scores >= 0, percentile ranks by default.
//   E_i = -ln(p_i + 1e-9)      T = option[0] > 0, or where it is 0: 2/3 mean(E) over the list
//   P = softmax(-E / T) over the list; T <= 0 (no p below 1): uniform
//   score = sum_l w_l P_l in list order; a list that lacks the document adds 0
#pragma once

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct BoltzmannFusion {
    HOPFUSE_FN void list_values(const float* p, int64_t n, const float* option, float* out) {
        TreeSum<float> sum;
        float least = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            out[i] = -hf_log(p[i] + 1e-9f);
            sum.push(out[i]);
            least = i == 0 || out[i] < least ? out[i] : least;
        }
        const float mean = sum.result() / static_cast<float>(n);
        const float temperature = option[0] > 0.0f ? option[0] : (2.0f * mean) / 3.0f;
        for (int64_t i = 0; i < n; ++i) {
            out[i] = temperature > 0.0f ? hf_exp((least - out[i]) / temperature) : 1.0f;
            sum.push(out[i]);
        }
        const float total = sum.result();
        for (int64_t i = 0; i < n; ++i) out[i] = out[i] / total;
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
