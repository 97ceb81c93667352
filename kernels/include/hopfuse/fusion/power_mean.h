// Weighted power mean: score = (sum_l w_l u_l^p / sum_l w_l)^(1/p), and its limit exp(sum_l w_l ln u_l / sum_l w_l) for
// p = 0, with u = c + epsilon, c >= 0 the calibrated scores, 0 if a list lacks the document. Sums in list
// order; 0 if all weights are 0. Powers are relative to the largest one, so that none overflows.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct PowerMeanFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        team.each(n, [=](int64_t i) { value[i] = hf_log(value[i] + option.epsilon); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        const float p = of.option.p, absent = hf_log(of.option.epsilon);
        float weights = 0.0f, sum = 0.0f, most = bits_to_float(0xff800000u);
        int at = 0;
        HOPFUSE_ROLLED
        for (int32_t l = 0; l < of.lists; ++l) {
            const float log = value_or(entry, held, l, absent, at);
            weights = weights + of.weight[l];
            sum = fmaf(of.weight[l], log, sum);
            if (of.weight[l] > 0.0f && p * log > most) most = p * log;
        }
        if (weights == 0.0f) return 0.0f;
        if (p == 0.0f) return hf_exp(sum / weights);
        float powers = 0.0f;
        at = 0;
        HOPFUSE_ROLLED
        for (int32_t l = 0; l < of.lists; ++l) {
            const float log = value_or(entry, held, l, absent, at);
            if (of.weight[l] > 0.0f) powers = fmaf(of.weight[l], hf_exp(fmaf(p, log, -most)), powers);
        }
        return hf_exp((most + hf_log(powers / weights)) / p);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
