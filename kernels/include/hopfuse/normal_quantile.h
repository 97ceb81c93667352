// The quantile function of the standard normal distribution in float32: Wichura, Algorithm AS 241, Applied Statistics
// 37 (1988), PPND7. Its rational functions are within 1e-7 of the quantile; in float32 the result is within 4e-7 of it,
// relative to max(|quantile|, 1).
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// The quantile of part / whole, 0 < part < whole. That of (whole - part) / whole is exactly its negative.
HOPFUSE_FN float normal_quantile(int64_t part, int64_t whole) {
    const float q = static_cast<float>(2 * part - whole) / (2.0f * static_cast<float>(whole));  // part / whole - 1/2
    if (fabsf(q) <= 0.425f) {
        const float r = fmaf(-q, q, 0.180625f);
        const float above = fmaf(fmaf(fmaf(59.109374720f, r, 159.29113202f), r, 50.434271938f), r, 3.3871327179f);
        const float below = fmaf(fmaf(fmaf(67.187563600f, r, 78.757757664f), r, 17.895169469f), r, 1.0f);
        return q * above / below;
    }
    const int64_t tail = 2 * part < whole ? part : whole - part;
    const float root = sqrtf(-hf_log(static_cast<float>(tail) / static_cast<float>(whole)));
    float above, below;
    if (root <= 5.0f) {
        const float r = root - 1.6f;
        above = fmaf(fmaf(fmaf(0.17023821103f, r, 1.3067284816f), r, 2.7568153900f), r, 1.4234372777f);
        below = fmaf(fmaf(0.12021132975f, r, 0.73700164250f), r, 1.0f);
    } else {
        const float r = root - 5.0f;
        above = fmaf(fmaf(fmaf(0.017337203997f, r, 0.42868294337f), r, 3.0812263860f), r, 6.6579051150f);
        below = fmaf(fmaf(0.012258202635f, r, 0.24197894225f), r, 1.0f);
    }
    return q < 0.0f ? -(above / below) : above / below;
}

}  // namespace hopfuse
