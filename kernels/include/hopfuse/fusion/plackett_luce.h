// Plackett-Luce strengths: score = exp(sum_l w_l ln(s_l + epsilon)) in list order, s the strengths of list l, 0 if it
// lacks the document. The list is one ranking of n; `steps` steps of Hunter's MM algorithm (Annals of Statistics 32, 2004,
// eq. 30), started with equal strengths, by position:
//   s_r <- [r < n] / sum_(t <= r) 1 / S_t,   S_t = sum_(j >= t) s_j;   then strengths are scaled to sum 1
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/fusion/log_linear.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct PlackettLuceFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions& option) {
        team.alone([=] {
            for (int64_t i = 0; i < n; ++i) value[i] = 1.0f;
            if (n > 1)
                for (int step = 0; step < static_cast<int>(option.steps); ++step) improve(value, n);
        });
        const float total = team.sum(n, [=](int64_t i) { return value[i]; });
        team.each(n, [=](int64_t i) { value[i] = hf_log(value[i] / total + option.epsilon); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        return weighted_product(entry, held, of, of.option.epsilon);
    }

private:
    // One step, with strengths in units of the first one.
    HOPFUSE_FN void improve(float* value, int64_t n) {
        float behind = 0.0f;
        for (int64_t i = n - 1; i >= 0; --i) value[i] = behind = behind + value[i];
        const float all = behind;
        float inverse = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            inverse = inverse + all / value[i];
            value[i] = 1.0f / inverse;
        }
        value[n - 1] = 0.0f;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
