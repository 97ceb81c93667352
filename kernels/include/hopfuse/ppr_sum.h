// Sums over nodes that do not depend on their order or on empty places: hopfuse/ppr.h, SUMS. Shared by host and device.
//
// A term v >= 0 is rounded to the nearest multiple of a grain, a power of two, ties to even: fl(fl(v + A) - A) with the anchor
// A = 2^52 grains, because float64 numbers from A to 2 A are multiples of the grain and the difference of two of them is
// exact. Multiples are added without rounding, in any order, while their sum is at most 2^53 grains. A sum of A or more is
// also detected in any order: partial sums are exact until one exceeds 2 A, and adding non-negative terms never reduces it.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

constexpr double PPR_ANCHOR = 4.0;                      // of float64's sums; x^ sums to 1, |d P' x^|, |s| and |x^| to 3
constexpr double PPR_GRAIN = 1.0 / 1125899906842624.0;  // 2^-50

// v rounded to the grain of an anchor.
HOPFUSE_FN double to_grain(double v, double anchor) { return (v + anchor) - anchor; }

// The value of a sum; infinity if it is the anchor or more.
HOPFUSE_FN double ppr_sum(double sum) {
    return sum < PPR_ANCHOR ? sum : static_cast<double>(bits_to_float(0x7f800000u));
}

// 1 / the mass of an iterate, which normalises it. The mass is capped at 4, because it may be anything far from the limit.
HOPFUSE_FN double ppr_factor(double mass) { return mass > 0.0 ? 1.0 / (mass < PPR_ANCHOR ? mass : PPR_ANCHOR) : 0.0; }

// The total error of sums over this many nodes that hold mass: half a grain each, in ||r||_1 and in the lost mass.
HOPFUSE_FN double ppr_missed(int64_t nodes) { return static_cast<double>(nodes) * PPR_GRAIN; }

// The anchor of a pass's residual: its grain is 2^-40 times the power of two at or below theta / shrink, the largest residual
// at which a walk ends. So every sum that may end a walk is exact.
HOPFUSE_FN double ppr_residual_anchor(float theta, float shrink) {
    const double end = static_cast<double>(theta) / static_cast<double>(shrink);
    const float bounded = end > 1e-30 ? (end < 1e30 ? static_cast<float>(end) : 1e30f) : 1e-30f;
    return 4096.0 * static_cast<double>(bits_to_float(float_to_bits(bounded) & 0x7f800000u));
}

// The anchor of a volume, from its largest term and the number of terms above 0, so that terms may have any scale: a power of
// two, 2 to 4 times the largest possible sum. 1e308 stands for an infinite volume.
HOPFUSE_FN double ppr_volume_anchor(double largest, double terms) {
    union {
        double value;
        uint64_t bits;
    } most = {largest * terms};
    if (!(most.value < 1e300)) return 1e308;
    if (most.value < 1e-280) most.value = 1e-280;
    most.bits &= 0x7ff0000000000000u;
    return 4.0 * most.value;
}

// The value of the volume's sum.
HOPFUSE_FN double ppr_volume(double sum, double anchor) { return anchor < 1e308 ? sum : 1e308; }

}  // namespace hopfuse
