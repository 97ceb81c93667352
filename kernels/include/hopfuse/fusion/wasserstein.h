// The Wasserstein-1 distance of two lists' scores: the area between their quantile functions (Vallender, Theory of
// Probability and Its Applications 18, 1974). For n values a and m values b, both in rank order,
//   W1 = sum_i f_i by the blocked tree,   f_i = sum_j s_ij |a_i - b_j| for j = 0, 1, ... in turn,
// s_ij the length of the intersection of [i m, (i + 1) m) and [j n, (j + 1) n), divided by n m. O(n + m).
#pragma once

#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

template <class Team>
HOPFUSE_FN float wasserstein(const Team& team, const float* a, int64_t n, const float* b, int64_t m) {
    const float all = static_cast<float>(n) * static_cast<float>(m);
    return team.sum(n, [=](int64_t i) {
        const int64_t begin = i * m, end = begin + m;
        float sum = 0.0f;
        HOPFUSE_ROLLED
        for (int64_t j = begin / n; j * n < end; ++j) {
            const int64_t from = begin > j * n ? begin : j * n, to = end < (j + 1) * n ? end : (j + 1) * n;
            sum = fmaf(static_cast<float>(to - from) / all, fabsf(a[i] - b[j]), sum);
        }
        return sum;
    });
}

// The mean distance over all pairs of non-empty lists, in order; 0 without pairs. `lists` has count(l) and values(l).
template <class Team, class Lists>
HOPFUSE_FN float mean_wasserstein(const Team& team, const Lists& lists, int32_t num_lists) {
    float sum = 0.0f, pairs = 0.0f;
    HOPFUSE_ROLLED
    for (int32_t a = 0; a < num_lists; ++a) {
        if (lists.count(a) == 0) continue;
        HOPFUSE_ROLLED
        for (int32_t b = a + 1; b < num_lists; ++b) {
            if (lists.count(b) == 0) continue;
            sum = sum + wasserstein(team, lists.values(a), lists.count(a), lists.values(b), lists.count(b));
            pairs = pairs + 1.0f;
        }
    }
    return pairs > 0.0f ? sum / pairs : 0.0f;
}

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
