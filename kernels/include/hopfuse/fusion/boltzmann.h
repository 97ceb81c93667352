// Boltzmann fusion (PhaseGraph). p: calibrated scores >= 0, percentile ranks by default.
//   E_i = -ln(p_i + 1e-9)      T = option[0] > 0, or where it is 0: 2/3 mean(E) over the list
//   P = softmax(-E / T) over the list; T <= 0 (no p below 1): uniform
//   score = sum_l w_l P_l in list order; a list that lacks the document adds 0
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct BoltzmannFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, const float* option) {
        float least = bits_to_float(0x7f800000u);
        const float sum = team.sum(n, [&](int64_t i) {
            const float energy = -hf_log(value[i] + 1e-9f);
            value[i] = energy;
            least = energy < least ? energy : least;
            return energy;
        });
        const float mean = sum / static_cast<float>(n), ground = team.least(least);
        const float temperature = option[0] > 0.0f ? option[0] : (2.0f * mean) / 3.0f;
        const float total = team.sum(n, [=](int64_t i) {
            value[i] = temperature > 0.0f ? hf_exp((ground - value[i]) / temperature) : 1.0f;
            return value[i];
        });
        team.each(n, [=](int64_t i) { value[i] = value[i] / total; });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const float* weight, const float*) {
        return weighted_sum(entry, held, weight);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
