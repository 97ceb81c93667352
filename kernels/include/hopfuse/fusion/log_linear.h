// Log-linear pooling: score = exp(sum_l w_l ln(P_l + epsilon)) in list order, P as in boltzmann.h with `temperature`,
// 0 if a list lacks the document.
#pragma once

#include "hopfuse/fusion/boltzmann.h"
#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

// exp(sum_l w_l value_l) in list order, value a logarithm; ln(missing) if a list lacks the document.
HOPFUSE_FN float weighted_product(const Entry* entry, int held, const Union& of, float missing) {
    const float absent = hf_log(missing);
    float sum = 0.0f;
    int at = 0;
    HOPFUSE_ROLLED
    for (int32_t l = 0; l < of.lists; ++l) sum = fmaf(of.weight[l], value_or(entry, held, l, absent, at), sum);
    return hf_exp(sum);
}

struct LogLinearFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        boltzmann_values(team, value, n, option.temperature, 1.0f);
        team.each(n, [=](int64_t i) { value[i] = hf_log(value[i] + option.epsilon); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        return weighted_product(entry, held, of, of.option.epsilon);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
