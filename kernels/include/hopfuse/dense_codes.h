// Scales, levels and bounds of 8-bit codes, which the CPU and a device compute alike; dense_topk.h derives them.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr int DENSE_LEVELS = 127;                   // of row codes, on either side of 0
constexpr int DENSE_WIDE_LEVELS = 127 * 256 + 127;  // the most levels of query codes
constexpr int DENSE_CODED_DIM = 1 << 16;            // the most dimensions of codes
constexpr int DENSE_CODE_SUM = 0x7fffffff / 255;    // S
static_assert(int64_t{DENSE_LEVELS} * DENSE_CODED_DIM <= DENSE_CODE_SUM, "127 levels fit, whatever the query");
constexpr float DENSE_CODE_UNDERFLOW = 1e-36f;  // of an inner product, in the bound of a scan

// The scale of codes with this many levels. If it is too small to divide by, it is 0: then all codes are 0, and all of the vector
// is error, which is a valid bound.
HOPFUSE_FN float code_scale(float largest, float levels) {
    const float scale = largest / levels;
    return scale >= 1e-37f ? scale : 0.0f;
}

// The levels of a query's codes, at most `most`: as many as keep its sums of products within int32. `sum` and `largest` are of its
// numbers' magnitudes.
HOPFUSE_FN int32_t query_levels(double sum, double largest, int32_t dim, int32_t most) {
    const double fit = (DENSE_CODE_SUM - 0.5 * dim) / (1.000001 * sum / largest);  // 0 / 0 for a query of zeros
    if (!(fit > DENSE_LEVELS)) return DENSE_LEVELS;
    return fit < most ? static_cast<int32_t>(fit) : most;
}

// A float32 above a non-negative value: the one after the nearest.
HOPFUSE_FN float float_above(double value) {
    const float nearest = static_cast<float>(value * (1.0 + 1e-9));
    const uint32_t bits = float_to_bits(nearest);
    return bits < 0x7f800000u ? bits_to_float(bits + 1) : nearest;
}

// An upper bound of the root of a sum of squares of float32 numbers, from its canonical value.
HOPFUSE_FN double root_above(float sum, int32_t dim) {
    constexpr double unit = 5.9604644775390625e-8, least = 2.8e-45;  // 2^-24, 2^-148
    const int32_t steps = (dim + 15) / 16;
    return sqrt((static_cast<double>(sum) + dim * least) / (1.0 - (steps + 6) * unit));
}

// The rounding error of a canonical score, relative to ||q|| ||x||: dim / 16 + 4 fused operations and additions; a
// cosine has as many again in each of its two norms, and a few for roots, product and quotient. The last term
// covers the float32 arithmetic of the scan.
HOPFUSE_FN double canonical_rounding(int32_t dim, bool cosine) {
    constexpr double unit = 5.9604644775390625e-8;
    const double steps = dim / 16 + 8;
    return ((cosine ? 3.0 : 1.0) * steps + 16.0) * unit * 1.01;
}

// The loss of a dot product by underflow, relative to the smallest norm of a query with cosine (sqrt(1.18e-38)).
// Inner products have an absolute allowance in the scan instead.
HOPFUSE_FN double canonical_underflow(int32_t dim) { return (dim + 16) * 1.5e-45 / 1e-19; }

// The bounds of a row's codes.
struct CodeBounds {
    float scale;      // s_x
    float error;      // ||e_x|| plus the rounding of the canonical score, rounded up
    float norm_code;  // ||x~||, rounded up
};

// The bounds of a row from its scale, the canonical sums of squares of its numbers and of their errors, and the sum of its codes'
// squares. With cosine they are those of x / ||x||, and `norm` is the canonical norm.
HOPFUSE_FN CodeBounds code_bounds(float scale, float square, float error_square, double code_squares, int32_t dim,
                                  bool cosine, float norm) {
    const double unit = cosine ? static_cast<double>(norm) : 1.0;
    const double rounding = canonical_rounding(dim, cosine) * root_above(square, dim);
    const double error = root_above(error_square, dim) + rounding + (cosine ? canonical_underflow(dim) : 0.0);
    return {static_cast<float>(static_cast<double>(scale) / unit), float_above(error / unit),
            float_above(static_cast<double>(scale) * sqrt(code_squares) / unit)};
}

}  // namespace hopfuse
