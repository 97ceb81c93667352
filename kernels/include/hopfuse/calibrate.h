// Score calibration: the contract. One query's list of n scores, in rank order, becomes n numbers on a
// common scale; the order stays. float32 throughout; sums by the blocked tree of scalar.h.
//
//   pit       percentile rank in [0, 1]; with l scores strictly below and g not above s (g counts s itself):
//             strict l/n, weak g/n, mean (l + g)/(2n), rank (l + g + 1)/(2n)
//             (the kinds of scipy.stats.percentileofscore)
//   min_max   (s - min) / (max - min); a constant list: 1
//   max       s / max|s|; an all-zero list: 0
//   z_score   (s - mean) / population standard deviation; a constant list: 0
//   l2        s / sqrt(sum s^2); an all-zero list: 0
//   rank      (n - r + 1) / n, r = 1 for the first of the list
//   none      s
//
// Equal scores get equal values, but for rank, which goes by position. An empty list stays empty.
#pragma once

#include <cstdint>

#include "hopfuse/scalar.h"
#include "hopfuse/status.h"

namespace hopfuse {

enum class Calibration : int { none = 0, pit = 1, min_max = 2, max = 3, z_score = 4, l2 = 5, rank = 6 };
enum class Ties : int { strict = 0, weak = 1, mean = 2, rank = 3 };

struct CalibrateArgs {
    int64_t batch, width;
    const float* scores;    // (B, width), rank order in a row
    const int64_t* counts;  // (B,)
    Calibration method;
    Ties ties;
    float* out;  // (B, width); -inf after counts
    int32_t threads;
};

HOPFUSE_FN float percentile(int64_t below, int64_t not_above, int64_t n, Ties ties) {
    const float total = static_cast<float>(n);
    switch (ties) {
        case Ties::strict: return static_cast<float>(below) / total;
        case Ties::weak: return static_cast<float>(not_above) / total;
        case Ties::mean: return static_cast<float>(below + not_above) / (2.0f * total);
        case Ties::rank: return static_cast<float>(below + not_above + 1) / (2.0f * total);
    }
    return 0.0f;
}

HOPFUSE_FN void calibrate_pit(const float* s, int64_t n, Ties ties, float* out) {
    for (int64_t begin = 0; begin < n;) {
        int64_t end = begin + 1;
        while (end < n && s[end] == s[begin]) ++end;
        const float p = percentile(n - end, n - begin, n, ties);
        for (int64_t i = begin; i < end; ++i) out[i] = p;
        begin = end;
    }
}

// Scores are divided by the largest |s| first (z does not change), so that squares neither overflow nor vanish.
HOPFUSE_FN void calibrate_z_score(const float* s, int64_t n, float largest, float* out) {
    TreeSum<float> sum;
    for (int64_t i = 0; i < n; ++i) sum.push(s[i] / largest);
    const float mean = sum.result() / static_cast<float>(n);
    for (int64_t i = 0; i < n; ++i) {
        out[i] = s[i] / largest - mean;
        sum.push(out[i] * out[i]);
    }
    const float deviation = sqrtf(sum.result() / static_cast<float>(n));
    for (int64_t i = 0; i < n; ++i) out[i] = deviation == 0.0f ? 0.0f : out[i] / deviation;
}

HOPFUSE_FN void calibrate_min_max(const float* s, int64_t n, float most, float least, float* out) {
    // Halved where the range is beyond float32.
    const float factor = most - least <= 3.40282347e38f ? 1.0f : 0.5f;
    const float low = least * factor, range = most * factor - low;
    for (int64_t i = 0; i < n; ++i) out[i] = (s[i] * factor - low) / range;
}

HOPFUSE_FN void calibrate_l2(const float* s, int64_t n, float largest, float* out) {
    TreeSum<float> sum;
    for (int64_t i = 0; i < n; ++i) sum.push((s[i] / largest) * (s[i] / largest));
    const float norm = sqrtf(sum.result());
    for (int64_t i = 0; i < n; ++i) out[i] = (s[i] / largest) / norm;
}

HOPFUSE_FN void fill(float* out, int64_t n, float value) {
    for (int64_t i = 0; i < n; ++i) out[i] = value;
}

// One list of n >= 1 scores in rank order.
HOPFUSE_FN void calibrate_list(const float* s, int64_t n, Calibration method, Ties ties, float* out) {
    const float most = s[0], least = s[n - 1];  // rank order: the ends are the extremes
    const float largest = fabsf(most) > fabsf(least) ? fabsf(most) : fabsf(least);
    const bool constant = most == least;
    switch (method) {
        case Calibration::none:
            for (int64_t i = 0; i < n; ++i) out[i] = s[i];
            return;
        case Calibration::pit: return calibrate_pit(s, n, ties, out);
        case Calibration::min_max: return constant ? fill(out, n, 1.0f) : calibrate_min_max(s, n, most, least, out);
        case Calibration::max:
            if (largest == 0.0f) return fill(out, n, 0.0f);
            for (int64_t i = 0; i < n; ++i) out[i] = s[i] / largest;
            return;
        case Calibration::z_score: return constant ? fill(out, n, 0.0f) : calibrate_z_score(s, n, largest, out);
        case Calibration::l2: return largest == 0.0f ? fill(out, n, 0.0f) : calibrate_l2(s, n, largest, out);
        case Calibration::rank:
            for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(n - i) / static_cast<float>(n);
            return;
    }
}

}  // namespace hopfuse
