// Codes of queries, with the norms that bound their error; those of rows are in dense_tiles.h. Included once per instruction
// set; query codes only select candidates, so they need not be canonical.
#pragma once

#include <cmath>

#include "dense_dot.h"
#include "hopfuse/dense_codes.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct CodeNorms {
    float scale;      // s
    float error;      // ||x - s c||, rounded up
    float norm_code;  // ||s c||, rounded up
    float norm;       // ||x||, rounded up
};

// Encodes one vector; write(i, c) receives each code in -levels .. levels.
template <class Write>
CodeNorms encode_vector(const float* x, int32_t dim, int32_t levels, const Write& write) {
    const float most = static_cast<float>(levels);
    float largest = 0.0f;
    for (int32_t i = 0; i < dim; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    const float scale = code_scale(largest, most);
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    double error = 0.0, norm_code = 0.0, norm = 0.0;
    for (int32_t i = 0; i < dim; ++i) {
        float c = std::nearbyintf(x[i] * inverse);
        c = c > most ? most : c < -most ? -most : c;
        const double coded = double(scale) * double(c), gap = double(x[i]) - coded;
        error += gap * gap, norm_code += coded * coded, norm += double(x[i]) * double(x[i]);
        write(i, static_cast<int>(c));
    }
    return {scale, float_above(std::sqrt(error)), float_above(std::sqrt(norm_code)), float_above(std::sqrt(norm))};
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
