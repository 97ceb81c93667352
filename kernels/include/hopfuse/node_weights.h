// Scaling of a query's node weights to the range of walks: hopfuse/ppr.h, NODE WEIGHTS. Shared by host and device.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// The scale of a query's weights, a power of two as two factors, and the threshold below which scaled weights count as 0.
struct NodeWeightScale {
    double first, second, least;
};

// 2^exponent, for -1022 .. 1023.
HOPFUSE_FN double power_of_two(int exponent) {
    union {
        uint64_t u;
        double f;
    } both = {static_cast<uint64_t>(exponent + 1023) << 52};
    return both.f;
}

HOPFUSE_FN double scaled_weight(NodeWeightScale scale, double weight) { return weight * scale.first * scale.second; }

// The scale for a largest weight above 0: the smallest power of two that is at least as large becomes 1.
HOPFUSE_FN NodeWeightScale node_weight_scale(double largest) {
    constexpr double least_normal = 2.2250738585072014e-308, least_ratio = 7.888609052210118e-31;  // 2^-1022, 2^-100
    const bool is_subnormal = largest < least_normal;
    union {
        double f;
        uint64_t u;
    } both = {is_subnormal ? largest * 18014398509481984.0 : largest};  // 2^54
    const bool is_power = (both.u & 0xfffffffffffffull) == 0;
    const int below = static_cast<int>(both.u >> 52) - 1023 - (is_subnormal ? 54 : 0);
    const int exponent = is_power ? -below : -below - 1;
    NodeWeightScale scale = {power_of_two(exponent / 2), power_of_two(exponent - exponent / 2), 0.0};
    scale.least = scaled_weight(scale, largest) * least_ratio;
    return scale;
}

// The scaled and rounded weight.
HOPFUSE_FN float read_node_weight(NodeWeightScale scale, double weight) {
    const double scaled = scaled_weight(scale, weight);
    return scaled < scale.least ? 0.0f : scaled < 1.0 ? static_cast<float>(scaled) : 1.0f;
}

// The same for the scale of float32 weights. The factors and the threshold are then float32 numbers, and a product is exact
// unless it is below the threshold or above 1.
HOPFUSE_FN float read_node_weight(NodeWeightScale scale, float weight) {
    const float scaled = weight * static_cast<float>(scale.first) * static_cast<float>(scale.second);
    return scaled < static_cast<float>(scale.least) ? 0.0f : scaled < 1.0f ? scaled : 1.0f;
}

// The weight that determines the scale: the largest of the nodes that count, else the largest of all, else 1.
HOPFUSE_FN double weight_that_scales(double largest_that_counts, double largest) {
    return largest_that_counts > 0.0 ? largest_that_counts : largest > 0.0 ? largest : 1.0;
}

}  // namespace hopfuse
