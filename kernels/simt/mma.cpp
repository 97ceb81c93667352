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

double widen(uint32_t pair, int which, bool is_bfloat) {
    const uint32_t bits = (pair >> (16 * which)) & 0xffffu;
    if (is_bfloat) {
        const uint32_t all = bits << 16;
        float value;
        std::memcpy(&value, &all, sizeof value);
        return static_cast<double>(value);
    }
    const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>((bits >> 10) & 31u);
    const double fraction = bits & 1023u;
    if (exponent == 31) return fraction != 0.0 ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024.0, exponent - 25));
}

double cut_off(double value, Cut cut) {
    return cut == Cut::towards_zero ? std::trunc(value) : cut == Cut::down ? std::floor(value) : std::ceil(value);
}

float round_to_float(double sum, int extra_bits, Cut cut) {
    if (sum == 0.0 || !std::isfinite(sum)) return static_cast<float>(sum);
    const int last = std::max(std::ilogb(sum) - 23 - std::min(extra_bits, 0), -149);
    return static_cast<float>(std::ldexp(cut_off(std::ldexp(sum, -last), cut), last));
}

// sum + values[0] + ... + values[count - 1].
double add_group(double sum, const double* values, int count, const Unit& unit, Cut cut) {
    double largest = std::fabs(sum), plain = sum;
    for (int i = 0; i < count; ++i) {
        largest = std::fmax(largest, std::fabs(values[i]));
        plain += values[i];
    }
    if (largest == 0.0 || !std::isfinite(plain)) return plain;
    const int last = std::ilogb(largest) - 23 - unit.extra_bits;
    double total = cut_off(std::ldexp(sum, -last), cut);
    for (int i = 0; i < count; ++i) total += cut_off(std::ldexp(values[i], -last), cut);
    return static_cast<double>(round_to_float(std::ldexp(total, last), unit.extra_bits, cut));
}

}  // namespace

void multiply_add(const MatrixParts* const* lanes, simt_mma chosen) {
    const Unit& unit = units[chosen];
    const int depth = lanes[0]->depth;
    const bool is_bfloat = lanes[0]->is_bfloat;
    double rows[16][16], columns[8][16];
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, within = 2 * (lane % 4);
        for (int i = 0; i < depth / 2; ++i)  // number i of a lane's rows
            rows[group + (i / 2 % 2) * 8][within + i / 4 * 8 + i % 2] =
                widen(lanes[lane]->rows[i / 2], i % 2, is_bfloat);
        for (int i = 0; i < depth / 4; ++i)
            columns[group][within + i / 2 * 8 + i % 2] = widen(lanes[lane]->columns[i / 2], i % 2, is_bfloat);
    }
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
            const Cut cut = !unit.is_uneven ? Cut::towards_zero : row % 2 == 0 ? Cut::down : Cut::up;
            double sum = static_cast<double>(lanes[lane]->sums[i]);
            for (int first = 0; first < depth; first += unit.group) {
                const int count = std::min(unit.group, depth - first);
                double products[16];
                for (int j = 0; j < count; ++j) products[j] = rows[row][first + j] * columns[column][first + j];
                sum = add_group(sum, products, count, unit, cut);
            }
            lanes[lane]->sums[i] = static_cast<float>(sum);
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
