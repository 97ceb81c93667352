// Dot products of 8-bit codes of rows with codes of queries, exact in int32. Included once per instruction set.
//
// Products implements one group of DENSE_GROUP dimensions on an instruction set, for ROWS rows of a tile, whose int32 sums are
// one or several vectors, and one query. Its Shapes are the blocks whose sums fit the registers, widest first: P parts of ROWS
// rows by Q queries. Blocks of few queries are limited by memory: processors with AMX read four tiles at a time, each in
// a stream of its own, faster than one; on others one tile is faster.
#pragma once

#include <cstring>

#include "amx_dots.h"
#include "hopfuse/dense_topk.h"
#include "simd.h"

namespace hopfuse::HOPFUSE_ISA_NS {

template <int P, int Q>
struct Shape {
    static constexpr int parts = P, queries = Q;
};

template <class... S>
struct ShapeList {
    // Calls use(shape) for each shape.
    template <class Use>
    static void each(const Use& use) {
        (use(S{}), ...);
    }
};

#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVXVNNI)

// This instruction set multiplies bytes. A query code is one byte or two, 256 high + low, each in a vector of its own: two
// double the products, and leave fewer rows to rescore, which is worth it in many dimensions.
using QueryElement = int8_t;
#if defined(HOPFUSE_ISA_AMX)
constexpr int32_t TWO_BYTES_FROM = 512;
#else
constexpr int32_t TWO_BYTES_FROM = 1024;
#endif
constexpr int MOST_VECTORS = 2;
constexpr int32_t LEAST_ELEMENT = -128, MOST_ELEMENT = 127;
HF_INLINE int32_t vectors_of_query(int32_t dim) { return dim < TWO_BYTES_FROM ? 1 : 2; }
HF_INLINE int32_t most_levels(int32_t dim) { return dim < TWO_BYTES_FROM ? DENSE_LEVELS : DENSE_WIDE_LEVELS; }

// Writes code c of dimension i to a query's vectors, which are `stride` apart.
HF_INLINE void put_query_code(int8_t* vectors, int64_t stride, int32_t count, int32_t i, int32_t c) {
    if (count == 1) return static_cast<void>(vectors[i] = static_cast<int8_t>(c));
    const int32_t high = (c + 128) >> 8;
    vectors[i] = static_cast<int8_t>(high), vectors[stride + i] = static_cast<int8_t>(c - 256 * high);
}

// The position of dimension i of a group among the group's codes.
HF_INLINE int place_in_group(int i) { return i; }

HF_INLINE int32_t four_bytes(const int8_t* group) {
    int32_t bytes;
    std::memcpy(&bytes, group, 4);
    return bytes;
}

#else

// This instruction set multiplies 16-bit numbers, so query codes have up to 15 bits and a sign. Row codes are split into even
// and odd bytes, so the even dimensions of a group come first.
using QueryElement = int16_t;
constexpr int MOST_VECTORS = 1;
constexpr int32_t LEAST_ELEMENT = -DENSE_WIDE_LEVELS, MOST_ELEMENT = DENSE_WIDE_LEVELS;
HF_INLINE int32_t vectors_of_query(int32_t) { return 1; }
HF_INLINE int32_t most_levels(int32_t) { return DENSE_WIDE_LEVELS; }

HF_INLINE int place_in_group(int i) { return ((i & 1) << 1) | (i >> 1); }

HF_INLINE void put_query_code(int16_t* vector, int64_t, int32_t, int32_t i, int32_t c) {
    vector[i / DENSE_GROUP * DENSE_GROUP + place_in_group(i % DENSE_GROUP)] = static_cast<int16_t>(c);
}

HF_INLINE int32_t pair(const int16_t* two) {
    int32_t both;
    std::memcpy(&both, two, 4);
    return both;
}

#endif

#if defined(HOPFUSE_ISA_AVX512)

struct Products {
    static constexpr int ROWS = 16;
    using Sums = __m512i;
    using Rows = __m512i;
    using Query = __m512i;
#if defined(HOPFUSE_ISA_AMX)
    using Shapes = ShapeList<Shape<4, 32>, Shape<2, 32>, Shape<4, 16>, Shape<2, 16>, Shape<2, 12>, Shape<2, 8>,
                             Shape<4, 4>, Shape<4, 3>, Shape<4, 2>, Shape<4, 1>>;
#else
    using Shapes = ShapeList<Shape<2, 12>, Shape<2, 8>, Shape<1, 4>, Shape<1, 2>, Shape<1, 1>>;
#endif

    HF_INLINE Sums zero() { return _mm512_setzero_si512(); }
    HF_INLINE Rows rows(const uint8_t* codes) { return _mm512_loadu_si512(codes); }
    HF_INLINE Query query(const int8_t* group) { return _mm512_set1_epi32(four_bytes(group)); }
    HF_INLINE Sums add(Sums sums, Rows x, Query q) { return _mm512_dpbusd_epi32(sums, x, q); }
    HF_INLINE void store(int32_t* dots, Sums sums) { _mm512_storeu_si512(dots, sums); }
};

#elif defined(HOPFUSE_ISA_AVX2)

// Eight rows per register, for both kinds of multiplication.
struct EightRows {
    static constexpr int ROWS = 8;
    using Sums = __m256i;
    using Shapes = ShapeList<Shape<2, 6>, Shape<2, 5>, Shape<2, 4>, Shape<2, 3>, Shape<2, 2>, Shape<2, 1>>;

    HF_INLINE Sums zero() { return _mm256_setzero_si256(); }
    HF_INLINE __m256i bytes(const uint8_t* codes) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    }
    HF_INLINE void store(int32_t* dots, Sums sums) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(dots), sums); }
};

#if defined(HOPFUSE_ISA_AVXVNNI)

// vpdpbusd in 256 bits: adds the four products of adjacent unsigned and signed bytes to int32 sums. With the encoding of
// AVX-VNNI or AVX-512 or, for tests on a processor with neither, emulated with AVX2.
HF_INLINE __m256i add_byte_products(__m256i sums, __m256i x, __m256i q) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sums, x, q);
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(sums, x, q);
#else
    const __m256i even = _mm256_and_si256(x, _mm256_set1_epi16(0x00ff)), odd = _mm256_srli_epi16(x, 8);
    const __m256i even_q = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8), odd_q = _mm256_srai_epi16(q, 8);
    const __m256i both = _mm256_add_epi32(_mm256_madd_epi16(even, even_q), _mm256_madd_epi16(odd, odd_q));
    return _mm256_add_epi32(sums, both);
#endif
}

struct Products : EightRows {
    using Rows = __m256i;
    using Query = __m256i;

    HF_INLINE Rows rows(const uint8_t* codes) { return bytes(codes); }
    HF_INLINE Query query(const int8_t* group) { return _mm256_set1_epi32(four_bytes(group)); }
    HF_INLINE Sums add(Sums sums, Rows x, Query q) { return add_byte_products(sums, x, q); }
};

#else

// Without a dot product of bytes: pairs of 16-bit numbers, multiplied and added exactly.
struct Products : EightRows {
    struct Rows {
        __m256i even, odd;
    };
    struct Query {
        __m256i even, odd;
    };

    HF_INLINE Rows rows(const uint8_t* codes) {
        const __m256i x = bytes(codes);
        return {_mm256_and_si256(x, _mm256_set1_epi16(0x00ff)), _mm256_srli_epi16(x, 8)};
    }
    HF_INLINE Query query(const int16_t* group) {
        return {_mm256_set1_epi32(pair(group)), _mm256_set1_epi32(pair(group + 2))};
    }
    HF_INLINE Sums add(Sums sums, Rows x, Query q) {
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x.even, q.even));
        return _mm256_add_epi32(sums, _mm256_madd_epi16(x.odd, q.odd));
    }
};

#endif

#elif defined(HOPFUSE_ISA_NEON)

// Four rows per vector of bytes, with two vectors of sums, each with two sums per row.
struct Products {
    static constexpr int ROWS = 8;
    struct Sums {
        int32x4_t of[ROWS / 4][2];
    };
    struct Rows {
        int16x8_t even[ROWS / 4], odd[ROWS / 4];
    };
    struct Query {
        int16x8_t even, odd;
    };
    using Shapes = ShapeList<Shape<1, 6>, Shape<1, 5>, Shape<1, 4>, Shape<2, 3>, Shape<2, 2>, Shape<2, 1>>;

    HF_INLINE Sums zero() {
        const int32x4_t none = vdupq_n_s32(0);
        return {{{none, none}, {none, none}}};
    }
    HF_INLINE Rows rows(const uint8_t* codes) {
        Rows found;
        HF_UNROLL for (int i = 0; i < ROWS / 4; ++i) {
            const uint16x8_t x = vreinterpretq_u16_u8(vld1q_u8(codes + 16 * i));
            found.even[i] = vreinterpretq_s16_u16(vandq_u16(x, vdupq_n_u16(0x00ff)));
            found.odd[i] = vreinterpretq_s16_u16(vshrq_n_u16(x, 8));
        }
        return found;
    }
    HF_INLINE Query query(const int16_t* group) {
        return {vreinterpretq_s16_s32(vdupq_n_s32(pair(group))), vreinterpretq_s16_s32(vdupq_n_s32(pair(group + 2)))};
    }
    HF_INLINE Sums add(Sums sums, Rows x, Query q) {
        HF_UNROLL for (int i = 0; i < ROWS / 4; ++i) {
            sums.of[i][0] = vmlal_s16(sums.of[i][0], vget_low_s16(x.even[i]), vget_low_s16(q.even));
            sums.of[i][1] = vmlal_high_s16(sums.of[i][1], x.even[i], q.even);
            sums.of[i][0] = vmlal_s16(sums.of[i][0], vget_low_s16(x.odd[i]), vget_low_s16(q.odd));
            sums.of[i][1] = vmlal_high_s16(sums.of[i][1], x.odd[i], q.odd);
        }
        return sums;
    }
    HF_INLINE void store(int32_t* dots, Sums sums) {
        HF_UNROLL for (int i = 0; i < ROWS / 4; ++i) vst1q_s32(dots + 4 * i, vpaddq_s32(sums.of[i][0], sums.of[i][1]));
    }
};

#else

struct Products {
    static constexpr int ROWS = 16;
    struct Sums {
        int32_t of[ROWS];
    };
    using Rows = const uint8_t*;
    using Query = const int16_t*;
    using Shapes = ShapeList<Shape<1, 4>, Shape<1, 1>>;

    HF_INLINE Sums zero() { return {}; }
    HF_INLINE Rows rows(const uint8_t* codes) { return codes; }
    HF_INLINE Query query(const int16_t* group) { return group; }
    HF_INLINE Sums add(Sums sums, Rows x, Query q) {
        for (int r = 0; r < ROWS; ++r)
            for (int i = 0; i < DENSE_GROUP; ++i) sums.of[r] += int32_t{x[r * DENSE_GROUP + i]} * q[place_in_group(i)];
        return sums;
    }
    HF_INLINE void store(int32_t* dots, Sums sums) { std::memcpy(dots, sums.of, sizeof sums.of); }
};

#endif

#if defined(HOPFUSE_ISA_AMX)
// What code_dots() needs while it is called, and the codes that vectors of query codes are padded to.
using DotRegisters = TileRegisters;
constexpr int64_t QUERY_STEP = REGISTER_CODES;
#else
struct DotRegisters {
    explicit DotRegisters(int64_t) {}
};
constexpr int64_t QUERY_STEP = DENSE_GROUP;
#endif

// ------------------------------------------------------------------------------------------------

constexpr int64_t GROUP_BYTES = DENSE_TILE * DENSE_GROUP;  // of a tile
constexpr int TILE_PARTS = DENSE_TILE / Products::ROWS;

constexpr int tiles_of(int parts) { return parts < TILE_PARTS ? 1 : parts / TILE_PARTS; }

// How far ahead loops prefetch that read several streams of memory in order and compute little.
constexpr int64_t STREAM_AHEAD = 2048;

// Blocks of at most this many vectors of query codes read tiles that are far apart.
#if defined(HOPFUSE_ISA_AMX)
constexpr int FEW_VECTORS = 4;
#else
constexpr int FEW_VECTORS = 0;
#endif

// Like code_dots, for P parts that begin at `codes`.
template <int P, int Q>
HF_INLINE void part_dots(const uint8_t* codes, int64_t apart, int32_t groups, const QueryElement* queries,
                         int64_t query_stride, int32_t* dots) {
    constexpr int T = tiles_of(P);
    Products::Sums sums[P][Q];
    HF_UNROLL for (int p = 0; p < P; ++p) HF_UNROLL for (int j = 0; j < Q; ++j) sums[p][j] = Products::zero();
    for (int32_t g = 0; g < groups; ++g) {
        Products::Rows x[P];
        HF_UNROLL for (int p = 0; p < P; ++p) {
            const int64_t part = (p % TILE_PARTS) * Products::ROWS * DENSE_GROUP;
            x[p] = Products::rows(codes + (p / TILE_PARTS) * apart + g * GROUP_BYTES + part);
        }
        const int64_t ahead = Q <= FEW_VECTORS ? STREAM_AHEAD : T * apart;
        HF_UNROLL for (int t = 0; t < T; ++t) prefetch_beyond(codes, t * apart + g * GROUP_BYTES + ahead);
        HF_UNROLL for (int j = 0; j < Q; ++j) {
            const Products::Query q = Products::query(queries + j * query_stride + int64_t{g} * DENSE_GROUP);
            HF_UNROLL for (int p = 0; p < P; ++p) sums[p][j] = Products::add(sums[p][j], x[p], q);
        }
    }
    HF_UNROLL for (int p = 0; p < P; ++p) HF_UNROLL for (int j = 0; j < Q; ++j)
        Products::store(dots + ((p / TILE_PARTS) * Q + j) * DENSE_TILE + (p % TILE_PARTS) * Products::ROWS, sums[p][j]);
}

// dots[(t * Q + j) * 16 + r] = sum over the groups of codes[t][group][r][:] . queries[j][group][:], for the tiles of P
// parts, `apart` bytes from each other, and Q queries; codes are c + 128, queries signed.
template <int P, int Q>
void code_dots(const uint8_t* codes, int64_t apart, int32_t groups, const QueryElement* queries, int64_t query_stride,
               int32_t* dots, [[maybe_unused]] NextTiles& next) {
#if defined(HOPFUSE_ISA_AMX)
    if constexpr (Q >= REGISTER_VECTORS) {
        for (int t = 0; t < tiles_of(P); t += 2, dots += 2 * Q * DENSE_TILE)
            register_dots<Q>(codes + t * apart, apart, groups, queries, query_stride, dots, next);
        return;
    }
#endif
    constexpr int at_once = P < TILE_PARTS ? P : TILE_PARTS;
    for (int part = 0; part < TILE_PARTS; part += at_once) {
        const int row = part * Products::ROWS;
        part_dots<P, Q>(codes + row * DENSE_GROUP, apart, groups, queries, query_stride, dots + row);
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
