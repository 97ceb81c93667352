// Codes of queries, with the norms that bound their error; those of rows are in dense_tiles.h. Included once per instruction
// set; query codes only select candidates, so they need not be canonical.
#pragma once

#include <cmath>
#include <limits>

#include "dense_dot.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct CodeNorms {
    float scale;      // s
    float error;      // ||x - s c||, rounded up
    float norm_code;  // ||s c||, rounded up
    float norm;       // ||x||, rounded up
};

// A float32 above a non-negative value: the one after the nearest.
HF_INLINE float round_up(double value) {
    const float nearest = static_cast<float>(value * (1.0 + 1e-9));
    return nearest < std::numeric_limits<float>::infinity() ? bits_to_float(float_to_bits(nearest) + 1) : nearest;
}

// Encodes one vector; write(i, c) receives each code in -levels .. levels.
template <class Write>
CodeNorms encode_vector(const float* x, int32_t dim, int32_t levels, const Write& write) {
    const float most = static_cast<float>(levels);
    float largest = 0.0f;
    for (int32_t i = 0; i < dim; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    // If the scale is too small to divide by, all codes are 0 and the error is x itself, which is a valid bound.
    const float scale = largest / most >= 1e-37f ? largest / most : 0.0f;
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    double error = 0.0, norm_code = 0.0, norm = 0.0;
    for (int32_t i = 0; i < dim; ++i) {
        float c = std::nearbyintf(x[i] * inverse);
        c = c > most ? most : c < -most ? -most : c;
        const double coded = double(scale) * double(c), gap = double(x[i]) - coded;
        error += gap * gap, norm_code += coded * coded, norm += double(x[i]) * double(x[i]);
        write(i, static_cast<int>(c));
    }
    return {scale, round_up(std::sqrt(error)), round_up(std::sqrt(norm_code)), round_up(std::sqrt(norm))};
}

// The rounding error of a canonical score, relative to ||q|| ||x||: dim / 16 + 4 fused operations and additions; a
// cosine has as many again in each of its two norms, and a few for roots, product and quotient. The last term
// covers the float32 arithmetic of the scan.
HF_INLINE double canonical_rounding(int32_t dim, bool cosine) {
    constexpr double unit = 5.9604644775390625e-8;
    const double steps = dim / 16 + 8;
    return ((cosine ? 3.0 : 1.0) * steps + 16.0) * unit * 1.01;
}

// The loss of a dot product by underflow, relative to the smallest norm of a query with cosine (sqrt(1.18e-38)).
// Inner products have an absolute allowance in the scan instead.
HF_INLINE double canonical_underflow(int32_t dim) { return (dim + 16) * 1.5e-45 / 1e-19; }

}  // namespace hopfuse::HOPFUSE_ISA_NS
