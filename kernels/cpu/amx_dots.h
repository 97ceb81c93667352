// Dot products of codes in the tile registers of AMX: 32 rows by 16 or 32 vectors of query codes. A tile of row codes is
// already in the order that the instruction reads: 16 groups of 16 rows are a register. Included once per instruction set.
// Other instruction sets have no blocks of so many vectors.
#pragma once

#include <cstring>

#include "hopfuse/dense_topk.h"
#include "simd.h"

namespace hopfuse::HOPFUSE_ISA_NS {

constexpr int REGISTER_VECTORS = 16;  // of query codes
constexpr int REGISTER_GROUPS = 16;   // of dimensions

// The tiles after those that are scanned. Each call prefetches some lines, so that memory is read all the time, while
// products are computed and while they are tested.
struct NextTiles {
    const uint8_t* next;
    int64_t lines;

    HF_MEMBER void operator()() {
        for (int64_t line = 0; line < lines; ++line) prefetch_beyond(next, line * 64);
        next += lines * 64;
    }
};

// The calls for the products of T tiles.
HF_INLINE int64_t register_steps(int tiles, int32_t groups) { return tiles / 2 * (groups / REGISTER_GROUPS); }

#if defined(HOPFUSE_ISA_AMX)

struct alignas(64) TileConfig {
    uint8_t palette = 1, start = 0, unused[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Configures the eight tile registers, each with 16 rows of 64 bytes, while it exists, if there are enough vectors of query
// codes to use them. Threads without a configuration have no tile state that the system must save.
class TileRegisters {
public:
    explicit TileRegisters(int64_t vectors) : used_(vectors >= REGISTER_VECTORS) {
        static constexpr TileConfig config;
        if (used_) _tile_loadconfig(&config);
    }
    ~TileRegisters() {
        if (used_) _tile_release();
    }
    TileRegisters(const TileRegisters&) = delete;
    TileRegisters& operator=(const TileRegisters&) = delete;

private:
    const bool used_;
};

constexpr int REGISTER_BYTES = 64 * REGISTER_GROUPS;           // of a tile register
constexpr int REGISTER_CODES = REGISTER_GROUPS * DENSE_GROUP;  // of a row or query

// Adds the products of 16 groups. Sums 0 .. 3 are those of (vectors 0 .. 15, tiles 0 and 1) and (vectors 16 .. 31, the same).
template <int Q>
HF_INLINE void add_register(const uint8_t* codes, int64_t apart, const int8_t* queries, int64_t query_stride) {
    _tile_loadd(6, codes, 64);
    _tile_loadd(7, codes + apart, 64);
    _tile_loadd(4, queries, query_stride);
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    if constexpr (Q == 32) {
        _tile_loadd(5, queries + 16 * query_stride, query_stride);
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
    }
}

// dots[(t * Q + j) * 16 + r], as code_dots(), for two tiles. Vectors of query codes are padded with zeros to whole
// registers. Calls next() every 16 groups.
template <int Q>
void register_dots(const uint8_t* codes, int64_t apart, int32_t groups, const int8_t* queries, int64_t query_stride,
                   int32_t* dots, NextTiles& next) {
    static_assert(Q == 16 || Q == 32);
    asm volatile("" ::: "memory");  // the intrinsics of GCC 12 do not tell the compiler that they read and write memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    int32_t g = 0;
    for (; g + REGISTER_GROUPS <= groups; g += REGISTER_GROUPS) {
        next();
        add_register<Q>(codes + g * 64, apart, queries + g * DENSE_GROUP, query_stride);
    }
    if (g < groups) {
        alignas(64) uint8_t rest[2 * REGISTER_BYTES] = {};
        for (int t = 0; t < 2; ++t)
            std::memcpy(rest + t * REGISTER_BYTES, codes + t * apart + g * 64, size_t(groups - g) * 64);
        asm volatile("" ::"r"(rest) : "memory");
        add_register<Q>(rest, REGISTER_BYTES, queries + g * DENSE_GROUP, query_stride);
    }
    _tile_stored(0, dots, 64);
    _tile_stored(1, dots + Q * 16, 64);
    if constexpr (Q == 32) {
        _tile_stored(2, dots + 256, 64);
        _tile_stored(3, dots + Q * 16 + 256, 64);
    }
    asm volatile("" ::: "memory");
}

#endif

}  // namespace hopfuse::HOPFUSE_ISA_NS
