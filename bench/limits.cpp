// The loops of bench/limits.py, which measure the bandwidth of reading rows of 128 bytes and single numbers from a level
// of memory, and the rate of 8-bit products.
#include <cstdint>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

namespace {
constexpr int ROW = 32;
constexpr int64_t AHEAD = 24;  // prefetch distance in rows
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

// Adds random numbers of `table`, chosen by a generator that reads no memory, `turns` times as many as there are. They
// are from the first 2^n rows, so that no draw needs a division. `order` seeds the generator, so that threads differ.
extern "C" float gather_floats(const float* table, const int32_t* order, int64_t rows, int64_t turns) {
    constexpr int CHAINS = 8;
    int shift = 32 - 5;  // of 32 bits, those that number 2^5 floats a row
    while ((rows >> (27 - shift)) > 1) --shift;
    uint32_t state[CHAINS];
    float sums[CHAINS] = {};
    for (uint32_t chain = 0; chain < CHAINS; ++chain)
        state[chain] = 0x9e3779b9u * (chain + 1) ^ 2654435761u * uint32_t(order[chain % uint64_t(rows)]);
    for (int64_t left = rows * ROW * turns; left >= CHAINS; left -= CHAINS)
#pragma GCC unroll 8
        for (int chain = 0; chain < CHAINS; ++chain) {
            state[chain] = state[chain] * 1664525u + 1013904223u;
            uint64_t at = state[chain] >> shift;
            asm volatile("" : "+r"(at));  // prevents vectorisation: a walk of one query reads one number at a time
            sums[chain] += table[at];
        }
    float total = 0.0f;
    for (float sum : sums) total += sum;
    return total;
}

// Multiplies 8-bit numbers in registers and adds the products, 16 * 64 in each step. Returns 0 if the processor has no
// instruction for that.
extern "C" int64_t multiply_bytes(int64_t steps) {
#if defined(__AVX512VNNI__)
    constexpr int CHAINS = 16;
    const __m512i codes = _mm512_set1_epi8(3);
    __m512i factor = _mm512_set1_epi8(1), sums[CHAINS];
    for (int chain = 0; chain < CHAINS; ++chain) sums[chain] = _mm512_set1_epi32(chain);
    for (int64_t step = 0; step < steps; ++step) {
        asm volatile("" : "+v"(factor));
#pragma GCC unroll 16
        for (int chain = 0; chain < CHAINS; ++chain) sums[chain] = _mm512_dpbusd_epi32(sums[chain], codes, factor);
    }
    int64_t total = 0;
    for (int chain = 0; chain < CHAINS; ++chain) total += _mm512_reduce_add_epi32(sums[chain]) & 0xff;
    return 1 + total;
#else
    (void)steps;
    return 0;
#endif
}
