// The loops of bench/limits.py, which measure the bandwidth of reading rows of 128 bytes and single numbers from a level
// of memory, and the rate of 8-bit products.
#include <cstdint>
#include <cstring>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif
#if defined(__AMX_INT8__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_TILES
#endif

namespace {

constexpr int ROW = 32;

// 16 numbers in the widest registers of the processor, so that a loop has as few loads as it can.
typedef float Line __attribute__((vector_size(64)));

Line load(const float* p) {
    Line line;
    std::memcpy(&line, p, sizeof(line));
    return line;
}

float total(const Line* sums, int count) {
    float all = 0.0f;
    for (int i = 0; i < count; ++i)
        for (int lane = 0; lane < 16; ++lane) all += sums[i][lane];
    return all;
}

// Adds the `count` rows of `table` that `order` lists, `turns` times, two rows at a time, and prefetches the row `ahead` rows
// on.
template <int64_t ahead>
float gather(const float* table, const int32_t* order, int64_t count, int64_t turns) {
    Line sums[4] = {};
    for (int64_t turn = 0; turn < turns; ++turn)
        for (int64_t at = 0; at + 2 <= count; at += 2)
#pragma GCC unroll 2
            for (int i = 0; i < 2; ++i) {
                if (ahead > 0) {
                    const float* later = table + int64_t{order[at + i + ahead < count ? at + i + ahead : at]} * ROW;
                    __builtin_prefetch(later);
                    __builtin_prefetch(later + ROW / 2);
                }
                const float* row = table + int64_t{order[at + i]} * ROW;
                sums[2 * i] += load(row);
                sums[2 * i + 1] += load(row + ROW / 2);
            }
    return total(sums, 4);
}

}  // namespace

// Adds all rows of `table`, in order, `turns` times.
extern "C" float read_rows(const float* table, const int32_t*, int64_t rows, int64_t turns) {
    Line sums[8] = {};
    for (int64_t turn = 0; turn < turns; ++turn)
        for (int64_t row = 0; row + 4 <= rows; row += 4)
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) sums[i] += load(table + row * ROW + i * 16);
    return total(sums, 8);
}

// The same, and prefetches 8 KiB on: a processor's own prefetcher may stop at the end of a page.
extern "C" float read_rows_ahead(const float* table, const int32_t*, int64_t rows, int64_t turns) {
    constexpr int64_t ahead = 2048;
    Line sums[8] = {};
    for (int64_t turn = 0; turn < turns; ++turn)
        for (int64_t row = 0; row + 4 <= rows; row += 4)
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                const float* line = table + row * ROW + i * 16;
                __builtin_prefetch(row * ROW + ahead + 128 <= rows * ROW ? line + ahead : table);
                sums[i] += load(line);
            }
    return total(sums, 8);
}

// gather(), as the kernels do and without prefetching.
extern "C" float gather_rows_ahead(const float* table, const int32_t* order, int64_t count, int64_t turns) {
    return gather<24>(table, order, count, turns);
}
extern "C" float gather_rows(const float* table, const int32_t* order, int64_t count, int64_t turns) {
    return gather<0>(table, order, count, turns);
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

namespace {

#if defined(HAS_TILES)
// 4 products of two tiles of 16 x 64 numbers in each step. Returns their number, or 0 if the system refuses tile registers.
int64_t multiply_tiles(int64_t steps) {
    constexpr long request_permission = 0x1023, tile_data = 18;
    static const bool may = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    if (!may) return 0;
    struct alignas(64) Config {
        uint8_t palette = 1, start = 0, unused[14] = {};
        uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static constexpr Config config;
    _tile_loadconfig(&config);
    for (int64_t step = 0; step < steps; ++step) {
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_release();
    return steps * 4 * 16 * 16 * 64;
}
#endif

}  // namespace

// Multiplies 8-bit numbers in registers and adds the products, for about the time of `steps` steps of 16 * 64 products without
// tile registers. Returns the number of products, or 0 if the processor has no instruction for that.
extern "C" int64_t multiply_bytes(int64_t steps) {
#if defined(HAS_TILES)
    if (const int64_t products = multiply_tiles(steps / 8); products > 0) return products;
#endif
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
    for (int chain = 0; chain < CHAINS; ++chain) asm volatile("" ::"v"(sums[chain]));
    return steps * CHAINS * 64;
#else
    (void)steps;
    return 0;
#endif
}
