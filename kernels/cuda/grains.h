// What kernels around a walk do with float64 numbers besides multiplying them: conversions from and to float32, and exact sums,
// by integers, because consumer GPUs have one float64 unit for 32 or 64 float32 units, which also does conversions. Results are
// those of float64 instructions. Device code only.
#pragma once

#include "hopfuse/device.h"
#include "hopfuse/ppr_sum.h"

namespace hopfuse {

HOPFUSE_DEVICE uint64_t double_to_bits(double value) {
    union {
        double f;
        uint64_t u;
    } both = {value};
    return both.u;
}

HOPFUSE_DEVICE double bits_to_double(uint64_t bits) {
    union {
        uint64_t u;
        double f;
    } both = {bits};
    return both.f;
}

// value, exactly.
HOPFUSE_DEVICE double widened(float value) {
    const uint32_t bits = float_to_bits(value), magnitude = bits & 0x7fffffffu;
    const bool is_zero = magnitude == 0;
    if (!is_zero && magnitude - 0x00800000u >= 0x7f000000u)
        return static_cast<double>(value);  // subnormal or not finite
    const uint32_t high = (bits & 0x80000000u) | (is_zero ? 0u : (magnitude >> 3) + 0x38000000u);
    return bits_to_double(static_cast<uint64_t>(high) << 32 | bits << 29);
}

// value, rounded to nearest even.
HOPFUSE_DEVICE float narrowed(double value) {
    const uint64_t bits = double_to_bits(value), magnitude = bits & 0x7fffffffffffffffu;
    const uint32_t exponent = static_cast<uint32_t>(magnitude >> 52);
    if (magnitude != 0 && exponent - 897u > 253u) return static_cast<float>(value);  // not a normal float32 number
    const uint64_t rounded = magnitude + 0x0fffffffu + ((magnitude >> 29) & 1u);
    const uint32_t kept = magnitude == 0 ? 0u : static_cast<uint32_t>(rounded >> 29) - 0x38000000u * 8u;
    return bits_to_float(static_cast<uint32_t>(bits >> 32 & 0x80000000u) | kept);
}

// b if it is larger than a, else a; both are at least 0.
HOPFUSE_DEVICE double larger(double a, double b) {
    const uint64_t bits = double_to_bits(b);
    return bits > double_to_bits(a) && bits <= 0x7ff0000000000000u ? b : a;
}

// A thread's sum of float64 terms that are at least 0, each rounded to PPR_GRAIN, ties to even: the sum of to_grain with
// PPR_ANCHOR. A sum of PPR_ANCHOR or more is some such number.
struct WideGrainSum {
    uint64_t grains = 0;

    __device__ void add(double term) {
        constexpr uint32_t unit = 1023 + 2;  // the exponent of PPR_ANCHOR, 2^52 grains
        const uint64_t bits = double_to_bits(term), integer = (bits & 0xfffffffffffffu) | 0x10000000000000u;
        const uint32_t exponent = static_cast<uint32_t>(bits >> 52), lost = unit - exponent;  // bits below a grain
        if (exponent >= unit) grains += 0x10000000000000u;
        else if (lost <= 53) grains += (integer + ((uint64_t{1} << (lost - 1)) - 1) + ((integer >> lost) & 1u)) >> lost;
        constexpr uint64_t most = 0x4000000000000000u;
        grains = grains < most ? grains : most;
    }
    __device__ double value() const { return static_cast<double>(grains) * PPR_GRAIN; }
};

// The same for float32 terms and any anchor, a power of two from 2^-90 to 2^120.
struct GrainSum {
    static constexpr int unit_bits = 25;  // of the grains in a unit; 2^27 units are an anchor
    int exponent;                         // of the anchor
    unsigned whole, grains;

    __device__ explicit GrainSum(double anchor)
        : exponent(static_cast<int>(double_to_bits(anchor) >> 52) - 1023), whole(0), grains(0) {}
    __device__ GrainSum(int of_anchor, unsigned units, unsigned others)
        : exponent(of_anchor), whole(units), grains(others) {}

    __device__ void add(float term) {
        constexpr float units = 33554432.0f, most = 268435456.0f;  // 2^25 and 2^28
        constexpr float integers = 8388608.0f;                     // 2^23, from where on there are only integers
        const float scaled = term * bits_to_float(static_cast<uint32_t>(127 + 27 - exponent) << 23);
        const float bounded = scaled < most ? scaled : most;
        const int integer = static_cast<int>(bounded);
        const float rest = (bounded - static_cast<float>(integer)) * units;
        const float rounded = rest < integers ? (rest + integers) - integers : rest;
        whole = whole + static_cast<unsigned>(integer);
        whole = whole < 1u << 30 ? whole : 1u << 30;
        grains = grains + static_cast<unsigned>(static_cast<int>(rounded));
    }

    // Adds whole units of grains to the others; called after each term if there may be more than 64.
    __device__ void carry() {
        whole = whole + (grains >> unit_bits);
        grains = grains & ((1u << unit_bits) - 1);
    }

    __device__ double value() const {
        const uint64_t sum = (static_cast<uint64_t>(whole) << unit_bits) + grains;
        return static_cast<double>(sum) * bits_to_double(static_cast<uint64_t>(exponent - 52 + 1023) << 52);
    }
};

}  // namespace hopfuse
