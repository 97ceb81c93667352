// Boltzmann fusion (PhaseGraph). p: calibrated scores >= 0, percentile ranks by default.
//   E_i = -ln(p_i + 1e-9)      T0 = temperature > 0, or if that is 0: 2/3 mean(E) over the list
//   T = T0 (1 + wasserstein W), W the distance of the query's lists (wasserstein.h); wasserstein >= 0
//   P = softmax(-E / T) over the list; T <= 0 (no p below 1): uniform
//   score = sum_l w_l P_l in list order; a list that lacks the document adds 0
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

HOPFUSE_FN float boltzmann_energy(float p) { return -hf_log(p + 1e-9f); }

// The temperature from the sum of n energies, unless `given` > 0.
HOPFUSE_FN float boltzmann_temperature(float sum, int64_t n, float given) {
    return given > 0.0f ? given : (2.0f * (sum / static_cast<float>(n))) / 3.0f;
}

// Converts calibrated scores to P, in place, with T = `factor` T0; T0 is `given` if that is > 0.
template <class Team>
HOPFUSE_FN void boltzmann_values(const Team& team, float* value, int64_t n, float given, float factor) {
    float least = bits_to_float(0x7f800000u);
    const float sum = team.sum(n, [&](int64_t i) {
        const float energy = boltzmann_energy(value[i]);
        value[i] = energy;
        least = energy < least ? energy : least;
        return energy;
    });
    const float temperature = boltzmann_temperature(sum, n, given) * factor, ground = team.least(least);
    const float total = team.sum(n, [=](int64_t i) {
        value[i] = temperature > 0.0f ? hf_exp((ground - value[i]) / temperature) : 1.0f;
        return value[i];
    });
    team.each(n, [=](int64_t i) { value[i] = value[i] / total; });
}

struct BoltzmannFusion : WeightedSum<BoltzmannFusion> {
    // At W = 0.
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        boltzmann_values(team, value, n, option.temperature, 1.0f);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
