// The loops of bench/limits.py: how fast rows of 128 bytes come out of a level of memory.
#include <cstdint>

namespace {
constexpr int ROW = 32;
constexpr int64_t AHEAD = 24;  // rows that are asked for before they are needed
}  // namespace

// Adds all rows of `table`, in order, `turns` times.
extern "C" float read_rows(const float* table, const int32_t*, int64_t rows, int64_t turns) {
    float sums[4 * ROW] = {};
    for (int64_t turn = 0; turn < turns; ++turn)
        for (int64_t row = 0; row + 4 <= rows; row += 4)
            for (int lane = 0; lane < 4 * ROW; ++lane) sums[lane] += table[row * ROW + lane];
    float total = 0.0f;
    for (float sum : sums) total += sum;
    return total;
}

// Adds all rows of `table`, in the given order, `turns` times.
extern "C" float gather_rows(const float* table, const int32_t* order, int64_t rows, int64_t turns) {
    float sums[ROW] = {};
    for (int64_t turn = 0; turn < turns; ++turn)
        for (int64_t at = 0; at < rows; ++at) {
            const float* ahead = table + int64_t{order[at + AHEAD < rows ? at + AHEAD : at]} * ROW;
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + ROW / 2);
            const float* row = table + int64_t{order[at]} * ROW;
            for (int lane = 0; lane < ROW; ++lane) sums[lane] += row[lane];
        }
    float total = 0.0f;
    for (float sum : sums) total += sum;
    return total;
}
