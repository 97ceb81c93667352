// Products of 16-bit numbers are exact. A group of them is added to a sum at once: all are aligned to the largest, in fixed
// point with some bits beyond the 24 of float32, cut off, and added exactly; the result is cut off to float32. This was
// measured by Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores (PeerJ Computer Science 7:e330,
// 2021), and Khattak and Mikaitis, Accurate models of NVIDIA tensor cores (arXiv:2512.07004, 2025):
//
//   unit     products in a group   bits beyond float32   cut off
//   v100     4                     0                     towards 0
//   a100     8                     1                     towards 0
//   h100     16                    2                     towards 0
//   lower    4                     -1                    towards 0
//   uneven   4                     -1                    down in even rows, up in odd rows
//   narrow   16                    -10                   towards 0
//
// lower and uneven are worse than any GPU measured; uneven brings rows whose exact sums are close out of order. narrow is an
// H100's sum of 8-bit numbers, which for 16-bit numbers is less exact than is assumed: the self-test must find it.
#include "mma.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace simt {

namespace {

enum class Cut { towards_zero, down, up };

struct Unit {
    int group, extra_bits;
    bool is_uneven;
};
constexpr Unit units[] = {{4, 0, false},  {8, 1, false}, {16, 2, false},
                          {4, -1, false}, {4, -1, true}, {16, -10, false}};

float from_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

double widen(uint32_t pair, int which, bool is_bfloat) {
    const uint32_t bits = (pair >> (16 * which)) & 0xffffu;
    if (is_bfloat) return static_cast<double>(from_bits(bits << 16));
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    if (exponent == 31) return fraction != 0 ? NAN : static_cast<double>(from_bits(sign | 0x7f800000u));
    if (exponent > 0) return static_cast<double>(from_bits(sign | (exponent + 112) << 23 | fraction << 13));
    return (sign != 0 ? -0x1p-24 : 0x1p-24) * fraction;
}

// Numbers here are products and sums of floats, so neither below nor above the normal numbers of double; scaled by powers of two
// they stay exact. The C library's functions for this took most of the emulator's time.
uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

constexpr uint64_t all_but_sign = ~uint64_t{0} >> 1, infinite = uint64_t{2047} << 52;

int exponent_of(uint64_t bits) { return static_cast<int>(bits >> 52 & 2047u) - 1023; }

double power_of_two(int exponent) {
    const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Of a number below 2^31, as all are that are aligned to the largest.
int32_t cut_off(double value, Cut cut) {
    const int32_t whole = static_cast<int32_t>(value);
    if (cut == Cut::towards_zero) return whole;
    return cut == Cut::down ? whole - (whole > value) : whole + (whole < value);
}

float round_to_float(double sum, int extra_bits, Cut cut) {
    if (sum == 0.0 || !std::isfinite(sum)) return static_cast<float>(sum);
    const int last = std::max(exponent_of(bits_of(sum)) - 23 - std::min(extra_bits, 0), -149);
    const double rounded = cut_off(sum * power_of_two(-last), cut) * power_of_two(last);
    return static_cast<float>(std::copysign(rounded, sum));  // for a sum that is cut off to 0
}

// sum + values[0] + ... + values[Count - 1]; a loop of known length is vectorised.
template <int Count>
double add_group(double sum, const double* values, const Unit& unit, Cut cut) {
    uint64_t largest = bits_of(sum) & all_but_sign;
    for (int i = 0; i < Count; ++i) largest = std::max(largest, bits_of(values[i]) & all_but_sign);
    if (largest == 0 || largest >= infinite) {
        for (int i = 0; i < Count; ++i) sum += values[i];
        return sum;
    }
    const int last = exponent_of(largest) - 23 - unit.extra_bits;
    const double scale = power_of_two(-last);
    int32_t total = cut_off(sum * scale, cut);
    if (cut == Cut::towards_zero)
        for (int i = 0; i < Count; ++i) total += static_cast<int32_t>(values[i] * scale);
    else
        for (int i = 0; i < Count; ++i) total += cut_off(values[i] * scale, cut);
    return static_cast<double>(round_to_float(total * power_of_two(last), unit.extra_bits, cut));
}

// The numbers of a warp's rows and columns.
struct Numbers {
    double rows[16][16], columns[8][16];
};

template <int Count>
void add_products(const MatrixParts* const* lanes, const Numbers& numbers, const Unit& unit) {
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
            const Cut cut = !unit.is_uneven ? Cut::towards_zero : row % 2 == 0 ? Cut::down : Cut::up;
            double sum = static_cast<double>(lanes[lane]->sums[i]);
            for (int first = 0; first < lanes[0]->depth; first += Count) {
                double products[Count];
                for (int j = 0; j < Count; ++j)
                    products[j] = numbers.rows[row][first + j] * numbers.columns[column][first + j];
                sum = add_group<Count>(sum, products, unit, cut);
            }
            lanes[lane]->sums[i] = static_cast<float>(sum);
        }
}

}  // namespace

void multiply_add(const MatrixParts* const* lanes, simt_mma chosen) {
    const Unit& unit = units[chosen];
    const int depth = lanes[0]->depth;
    const bool is_bfloat = lanes[0]->is_bfloat;
    Numbers numbers;
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, within = 2 * (lane % 4);
        for (int i = 0; i < depth / 2; ++i)  // number i of a lane's rows
            numbers.rows[group + (i / 2 % 2) * 8][within + i / 4 * 8 + i % 2] =
                widen(lanes[lane]->rows[i / 2], i % 2, is_bfloat);
        for (int i = 0; i < depth / 4; ++i)
            numbers.columns[group][within + i / 2 * 8 + i % 2] = widen(lanes[lane]->columns[i / 2], i % 2, is_bfloat);
    }
    switch (std::min(unit.group, depth)) {
        case 4: return add_products<4>(lanes, numbers, unit);
        case 8: return add_products<8>(lanes, numbers, unit);
        default: return add_products<16>(lanes, numbers, unit);
    }
}

void multiply_add(const ByteMatrixParts* const* lanes) {
    const bool is_small = lanes[0]->is_small;
    const int depth = is_small ? 16 : 32, words = is_small ? 1 : 4;
    const auto number = [](uint32_t word, int which) {
        return static_cast<int32_t>(static_cast<int8_t>(word >> (8 * which)));
    };
    int32_t rows[16][32], columns[8][32];
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, within = 4 * (lane % 4);
        for (int i = 0; i < 4 * words; ++i)  // number i of a lane's rows
            rows[group + (i / 4 % 2) * 8][within + i / 8 * 16 + i % 4] = number(lanes[lane]->rows[i / 4], i % 4);
        for (int i = 0; i < depth / 4; ++i)
            columns[group][within + i / 4 * 16 + i % 4] = number(lanes[lane]->columns[i / 4], i % 4);
    }
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < (is_small ? 2 : 4); ++i) {
            const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
            int32_t sum = 0;  // of at most 32 products below 2^14 + 1
            for (int j = 0; j < depth; ++j) sum += rows[row][j] * columns[column][j];
            int32_t& total = lanes[lane]->sums[i];
            total = static_cast<int32_t>(static_cast<uint32_t>(total) + static_cast<uint32_t>(sum));
        }
}

}  // namespace simt
