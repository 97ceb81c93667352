// Tsallis fusion: Boltzmann fusion (boltzmann.h) with the q-exponential in place of the exponential.
//   P_i = e_q(-E_i / T) / sum_j e_q(-E_j / T),   e_q(x) = [1 + (1 - q) x]_+^(1 / (1 - q)), exp(x) for q = 1
//   E and T as in boltzmann.h, T from `temperature`; q of each list; uniform if T <= 0 or all e_q are 0
//   score = sum_l w_l P_l in list order; a list that lacks the document adds 0
// Tsallis, Journal of Statistical Physics 52, 1988.
#pragma once

#include "hopfuse/fusion/boltzmann.h"
#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct TsallisFusion : WeightedSum<TsallisFusion> {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t list, const FusionOptions& option) {
        const float sum = team.sum(n, [=](int64_t i) {
            value[i] = boltzmann_energy(value[i]);
            return value[i];
        });
        const float temperature = boltzmann_temperature(sum, n, option.temperature), q = option.q[list];
        float least = bits_to_float(0x7f800000u);  // of -ln e_q
        team.each(n, [&](int64_t i) {
            value[i] = temperature > 0.0f ? -log_q_exponential(-value[i] / temperature, q) : 0.0f;
            least = value[i] < least ? value[i] : least;
        });
        const float ground = team.least(least);
        const bool none = float_to_bits(ground) == 0x7f800000u;
        const float total = team.sum(n, [=](int64_t i) {
            value[i] = none ? 1.0f : hf_exp(ground - value[i]);
            return value[i];
        });
        team.each(n, [=](int64_t i) { value[i] = value[i] / total; });
    }

private:
    // ln e_q(x) = ln(1 + y) / (1 - q), y = (1 - q) x. The factor y / ((1 + y) - 1) corrects the rounding of 1 + y (Kahan).
    HOPFUSE_FN float log_q_exponential(float x, float q) {
        const float y = (1.0f - q) * x, u = 1.0f + y;
        if (q == 1.0f || u == 1.0f) return x;
        if (u <= 0.0f) return bits_to_float(0xff800000u);
        if (float_to_bits(u) == 0x7f800000u) return hf_log(u) / (1.0f - q);
        return hf_log(u) * (y / (u - 1.0f)) / (1.0f - q);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
