// Weights of passages by their similarity to a query, which guide its walk: the contract.
//
// FORMULA   c_p = cos(q, x_p); m and s are the maximum and the standard deviation of a query's c_p over its allowed passages
//           weight_p = max(exp((c_p - m) / (tau max(s, 2^-16))), floor)     0 if a passage is not allowed
//           tau is in units of s, so that it means the same for encoders whose cosines differ little and for those whose
//           cosines differ much. Rounding may leave an s below 2^-16 of equal cosines.
//
// ORDER OF OPERATIONS (law 2)
//   c    the canonical cosine of dense_topk.h, in float32, whatever the corpus's metric
//   g    = m - c, one float32 subtraction; at least 0
//   G    = 2^29 g, rounded down to an int32: cosines are at most 1 in magnitude, apart from rounding
//   n, S = sum G, Q = sum G^2 over the allowed passages are exact integers: they do not depend on the order, nor on
//        passages that are not allowed. Q is summed in two halves of 32 bits, which 2^31 passages cannot overflow
//   s    in float64: a = S 2^-29 / n; b = (Q_high 2^32 + Q_low) 2^-58 / n; s = sqrt(max(b - a a, 0))
//   scale = tau max(s, 2^-16) in float64, then rounded to float32
//   weight = max(exp(max(-g / scale, -80)), floor), the division in float32 and exp that of scalar.h
//
// ERROR     relative to the formula on the canonical cosines: s has an error of at most 2^-28, and a weight above the floor a
//           relative error of |ln floor| (2^-28 / max(s, 2^-16) + 3 2^-24) + 2^-22. A canonical cosine has an error of at
//           most 1.01 (d / 16 + 10) 2^-24.
// INPUTS    no vector is zero or has a square beyond float32; at most 2^31 - 1 passages; tau and floor within the limits below
// ALIASING  The output does not overlap an input.
//
// SOURCE    A walk in which edges into a passage are weighted by its similarity to the query; the scale is the project's own
//           (docs/experiments.md names the alternatives tried).
#pragma once

#include "hopfuse/dense_topk.h"
#include "hopfuse/execution.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr double SIMILARITY_LEAST_SPREAD = 1.52587890625e-5;  // 2^-16
constexpr float SIMILARITY_LEAST_EXPONENT = -80.0f;
constexpr float SIMILARITY_GRAINS = 536870912.0f;  // 2^29
constexpr float SIMILARITY_ABSENT = -4.0f;         // marks a passage that is not allowed
// Limits of the options.
constexpr double SIMILARITY_LEAST_TAU = 1e-4, SIMILARITY_LARGEST_TAU = 1e4;
constexpr double SIMILARITY_LEAST_FLOOR = 1e-30;

struct SimilarityArgs {
    DenseVectors vectors;  // of the passages; their metric is ignored
    int64_t batch;
    const float* queries;       // (B, dim)
    const uint8_t* allow_mask;  // (N,) or (B, N): 0 or 1; or null
    bool allow_shared;
    double tau;
    float floor;
    Execution execution;
};

inline namespace HOPFUSE_SHARED {

// Exact integer sums over the gaps of a query's allowed passages.
struct SimilaritySums {
    uint64_t count, gaps, low, high;  // n, S, and Q in halves

    HOPFUSE_MEMBER void add(const SimilaritySums& other) {
        count += other.count, gaps += other.gaps, low += other.low, high += other.high;
    }
};

}  // namespace HOPFUSE_SHARED

// False for NaN, too, which a query without a valid norm has; its gaps cannot be converted to integers.
HOPFUSE_FN bool is_similarity(float cosine) { return cosine > SIMILARITY_ABSENT; }

// G of a gap.
HOPFUSE_FN uint32_t similarity_grains(float gap) {
    return static_cast<uint32_t>(static_cast<int32_t>(gap * SIMILARITY_GRAINS));
}

// The divisor of a query's gaps.
HOPFUSE_FN float similarity_scale(const SimilaritySums& sums, double tau) {
    constexpr double grain = 1.0 / 536870912.0;
    const double n = static_cast<double>(sums.count);
    const double mean = static_cast<double>(sums.gaps) * grain / n;
    const double squares = static_cast<double>(sums.high) * 4294967296.0 + static_cast<double>(sums.low);
    const double variance = squares * (grain * grain) / n - mean * mean;
    const double spread = sqrt(variance > 0.0 ? variance : 0.0);
    return static_cast<float>(tau * (spread > SIMILARITY_LEAST_SPREAD ? spread : SIMILARITY_LEAST_SPREAD));
}

HOPFUSE_FN float similarity_weight(float gap, float scale, float floor) {
    const float exponent = -gap / scale;
    const float weight = hf_exp(exponent > SIMILARITY_LEAST_EXPONENT ? exponent : SIMILARITY_LEAST_EXPONENT);
    return weight > floor ? weight : floor;
}

}  // namespace hopfuse
