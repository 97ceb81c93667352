// Score calibration: the contract. One query's list of n scores, in rank order, is mapped to n numbers on a
// common scale; the order is unchanged. float32 throughout; sums by the blocked tree of scalar.h.
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
//   theoretical_min_max  (s - lower) / (upper - lower), 0 if s <= lower, else 1 if s >= upper; lower and upper are given
//                        per list, upper is by default the list's max (TM2C2, Bruch et al., TOIS 2023)
//   three_sigma          1/2 + (s - mean) / (6 d), clipped to [0, 1], d the sample standard deviation (n - 1);
//                        a constant list: 1/2 (distribution-based score fusion)
//   sum                  (s - min) / sum (s - min); a constant list: 1/n (Montague & Aslam, CIKM 2001)
//   gaussian             the standard normal quantile of the mid-rank (l + g)/(2n): the optimal transport of the list
//                        to N(0, 1); a constant list: 0
//   softmax              exp((s - max) / T) / sum of these
//
// Equal scores get equal values, except with rank, which depends on the position. An empty list stays empty. For a list
// of one score, and for a list of two or more equal scores, the call may give the value.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/normal_quantile.h"
#include "hopfuse/scalar.h"
#include "hopfuse/status.h"

namespace hopfuse {

#define HOPFUSE_CALIBRATIONS(X) \
    X(none)                     \
    X(pit)                      \
    X(min_max)                  \
    X(max)                      \
    X(z_score)                  \
    X(l2)                       \
    X(rank)                     \
    X(theoretical_min_max)      \
    X(three_sigma)              \
    X(sum)                      \
    X(gaussian)                 \
    X(softmax)

enum class Calibration : int {
#define HOPFUSE_ENUM(name) name,
    HOPFUSE_CALIBRATIONS(HOPFUSE_ENUM)
#undef HOPFUSE_ENUM
};
enum class Ties : int { strict = 0, weak = 1, mean = 2, rank = 3 };

// How lists are calibrated.
struct CalibrationRule {
    Calibration method;
    Ties ties;
    float single,
        equal;          // the value of a list of one, and of a list of two or more equal scores; NaN: the method's own
    float temperature;  // softmax: > 0
    const float *lower, *upper;  // theoretical_min_max: of each list; upper NaN: the list's max
};

struct CalibrateArgs {
    int64_t batch, width;
    const float* scores;    // (B, width), rank order in a row
    const int64_t* counts;  // (B,)
    CalibrationRule rule;   // for one list
    float* out;             // (B, width); -inf after counts
    Execution execution;
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

// The number of scores adjacent to s[0] that equal it, among s[step], s[2 step], ..., s[room step], in rank order. The
// search doubles its stride, then halves it: one comparison for a score without ties, logarithmic time for a long run.
HOPFUSE_FN int64_t equals_beside(const float* s, int64_t room, int64_t step) {
    int64_t found = 0, stride = 1;
    for (; found + stride <= room && s[(found + stride) * step] == s[0]; stride *= 2) found += stride;
    for (stride /= 2; stride > 0; stride /= 2)
        if (found + stride <= room && s[(found + stride) * step] == s[0]) found += stride;
    return found;
}

template <class Team>
HOPFUSE_FN void calibrate_pit(const Team& team, const float* s, int64_t n, Ties ties, float* out) {
    team.each(n, [=](int64_t i) {
        const int64_t not_above = n - i + equals_beside(s + i, i, -1);
        const int64_t below = n - 1 - i - equals_beside(s + i, n - 1 - i, 1);
        out[i] = percentile(below, not_above, n, ties);
    });
}

// Scores are first divided by the largest |s|, which does not change z, so that squares neither overflow nor underflow.
template <class Team>
HOPFUSE_FN void calibrate_z_score(const Team& team, const float* s, int64_t n, float largest, float* out) {
    const float mean = team.sum(n, [=](int64_t i) { return s[i] / largest; }) / static_cast<float>(n);
    const float squares = team.sum(n, [=](int64_t i) {
        const float difference = s[i] / largest - mean;
        out[i] = difference;
        return difference * difference;
    });
    const float deviation = sqrtf(squares / static_cast<float>(n));
    team.each(n, [=](int64_t i) { out[i] = deviation == 0.0f ? 0.0f : out[i] / deviation; });
}

template <class Team>
HOPFUSE_FN void calibrate_min_max(const Team& team, const float* s, int64_t n, float most, float least, float* out) {
    // Scores are halved if the range overflows float32.
    const float factor = most - least <= 3.40282347e38f ? 1.0f : 0.5f;
    const float low = least * factor, range = most * factor - low;
    team.each(n, [=](int64_t i) { out[i] = (s[i] * factor - low) / range; });
}

template <class Team>
HOPFUSE_FN void calibrate_l2(const Team& team, const float* s, int64_t n, float largest, float* out) {
    const float norm = sqrtf(team.sum(n, [=](int64_t i) { return (s[i] / largest) * (s[i] / largest); }));
    team.each(n, [=](int64_t i) { out[i] = (s[i] / largest) / norm; });
}

template <class Team>
HOPFUSE_FN void fill(const Team& team, float* out, int64_t n, float value) {
    team.each(n, [=](int64_t i) { out[i] = value; });
}

template <class Team>
HOPFUSE_FN void calibrate_theoretical(const Team& team, const float* s, int64_t n, float lower, float upper,
                                      float* out) {
    const float most = upper == upper ? upper : s[0];
    const float factor = most - lower <= 3.40282347e38f ? 1.0f : 0.5f;
    const float low = lower * factor, range = most * factor - low;
    team.each(n, [=](int64_t i) {
        const float above = (s[i] * factor - low) / range;
        out[i] = s[i] <= lower ? 0.0f : s[i] >= most ? 1.0f : above;
    });
}

// Like z_score, but with the sample standard deviation. If the squares underflow, so does every difference.
template <class Team>
HOPFUSE_FN void calibrate_three_sigma(const Team& team, const float* s, int64_t n, float largest, float* out) {
    const float mean = team.sum(n, [=](int64_t i) { return s[i] / largest; }) / static_cast<float>(n);
    const float squares = team.sum(n, [=](int64_t i) {
        const float difference = s[i] / largest - mean;
        out[i] = difference;
        return difference * difference;
    });
    const float six = 6.0f * sqrtf(squares / static_cast<float>(n - 1));
    team.each(n, [=](int64_t i) {
        const float value = six == 0.0f ? 0.5f : 0.5f + out[i] / six;
        out[i] = value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
    });
}

// The range is divided out first, so that the sum does not overflow.
template <class Team>
HOPFUSE_FN void calibrate_sum(const Team& team, const float* s, int64_t n, float most, float least, float* out) {
    calibrate_min_max(team, s, n, most, least, out);
    const float total = team.sum(n, [=](int64_t i) { return out[i]; });
    team.each(n, [=](int64_t i) { out[i] = out[i] / total; });
}

template <class Team>
HOPFUSE_FN void calibrate_gaussian(const Team& team, const float* s, int64_t n, float* out) {
    team.each(n, [=](int64_t i) {
        const int64_t not_above = n - i + equals_beside(s + i, i, -1);
        const int64_t below = n - 1 - i - equals_beside(s + i, n - 1 - i, 1);
        out[i] = normal_quantile(below + not_above, 2 * n);
    });
}

template <class Team>
HOPFUSE_FN void calibrate_softmax(const Team& team, const float* s, int64_t n, float most, float temperature,
                                  float* out) {
    const float total = team.sum(n, [=](int64_t i) {
        out[i] = hf_exp((s[i] - most) / temperature);
        return out[i];
    });
    team.each(n, [=](int64_t i) { out[i] = out[i] / total; });
}

// Calibrates list number `list` of n >= 1 scores in rank order, by a team of scalar.h.
template <class Team>
HOPFUSE_FN void calibrate_list(const Team& team, const float* s, int64_t n, int32_t list, const CalibrationRule& rule,
                               float* out) {
    const float most = s[0], least = s[n - 1];  // rank order: the ends are the extremes
    const float largest = fabsf(most) > fabsf(least) ? fabsf(most) : fabsf(least);
    const bool constant = most == least, zero = largest == 0.0f;
    if (constant) {
        const float stated = n == 1 ? rule.single : rule.equal;
        if (stated == stated) return fill(team, out, n, stated);
    }
    switch (rule.method) {
        case Calibration::none: return team.each(n, [=](int64_t i) { out[i] = s[i]; });
        case Calibration::pit: return calibrate_pit(team, s, n, rule.ties, out);
        case Calibration::min_max:
            return constant ? fill(team, out, n, 1.0f) : calibrate_min_max(team, s, n, most, least, out);
        case Calibration::max:
            return zero ? fill(team, out, n, 0.0f) : team.each(n, [=](int64_t i) { out[i] = s[i] / largest; });
        case Calibration::z_score:
            return constant ? fill(team, out, n, 0.0f) : calibrate_z_score(team, s, n, largest, out);
        case Calibration::l2: return zero ? fill(team, out, n, 0.0f) : calibrate_l2(team, s, n, largest, out);
        case Calibration::rank:
            return team.each(n, [=](int64_t i) { out[i] = static_cast<float>(n - i) / static_cast<float>(n); });
        case Calibration::theoretical_min_max:
            return calibrate_theoretical(team, s, n, rule.lower[list], rule.upper[list], out);
        case Calibration::three_sigma:
            return constant ? fill(team, out, n, 0.5f) : calibrate_three_sigma(team, s, n, largest, out);
        case Calibration::sum:
            return constant ? fill(team, out, n, 1.0f / static_cast<float>(n))
                            : calibrate_sum(team, s, n, most, least, out);
        case Calibration::gaussian: return calibrate_gaussian(team, s, n, out);
        case Calibration::softmax: return calibrate_softmax(team, s, n, most, rule.temperature, out);
    }
}

// A row of `width` numbers: the calibrated list of n, then -inf.
template <class Team>
HOPFUSE_FN void calibrate_row(const Team& team, const float* s, int64_t n, int64_t width, const CalibrationRule& rule,
                              float* out) {
    if (n > 0) calibrate_list(team, s, n, 0, rule, out);
    fill(team, out + n, width - n, bits_to_float(0xff800000u));
}

}  // namespace hopfuse
