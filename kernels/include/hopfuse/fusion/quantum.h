// Quantum interference: with a_l = w_l P_l, P as in boltzmann.h with `temperature`, 0 if a list lacks the document,
// and pairs l < m of lists,
//   score = sum_l a_l + interference sum_(l < m) a_l a_m         interference = cos theta
//   score = sum_l a_l + interference sum_(l < m) sqrt(a_l a_m)   if `roots` is 1; interference = 2 cos theta, as in
//           the quantum probability ranking principle (Zuccon, Azzopardi & van Rijsbergen, ICTIR 2009)
// in list order.
#pragma once

#include "hopfuse/fusion/boltzmann.h"
#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct QuantumFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        boltzmann_values(team, value, n, option.temperature, 1.0f);
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float sum = 0.0f, before = 0.0f, pairs = 0.0f;
        HOPFUSE_ROLLED
        for (int e = 0; e < held; ++e) {
            const float mass = of.weight[entry[e].list] * entry[e].value;
            const float amplitude = of.option.roots == 1.0f ? sqrtf(mass) : mass;
            pairs = fmaf(amplitude, before, pairs);
            before = before + amplitude;
            sum = sum + mass;
        }
        return fmaf(of.option.interference, pairs, sum);
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
