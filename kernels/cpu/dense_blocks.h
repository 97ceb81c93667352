// Canonical scores in register blocks: a matrix product whose sums are those of dense_topk.h. Rows and queries are packed as
// float32, 16 dimensions at a time. Long vectors are divided into pieces, so that a piece of a block stays in the L1 cache;
// sums are kept in memory between pieces. Included once per instruction set.
#pragma once

#include "dense_dot.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// A block has BLOCK_ROWS x BLOCK_QUERIES scores, as many as fit in registers with one vector of the 16 sums of each.
#if defined(HOPFUSE_ISA_AVX512)
constexpr int BLOCK_LANES = 16, BLOCK_QUERIES = 8;
#elif defined(HOPFUSE_ISA_AVX2)
constexpr int BLOCK_LANES = 8, BLOCK_QUERIES = 4;
#elif defined(HOPFUSE_ISA_NEON)
constexpr int BLOCK_LANES = 4, BLOCK_QUERIES = 8;
#else
constexpr int BLOCK_LANES = 4, BLOCK_QUERIES = 4;
#endif
constexpr int BLOCK_ROWS = 3;
constexpr int PIECE_STEPS = 48;  // steps of 16 dimensions per piece

HF_INLINE int32_t step_count(int32_t dim) { return (dim + 15) / 16; }
HF_INLINE int32_t piece_count(int32_t steps) { return (steps + PIECE_STEPS - 1) / PIECE_STEPS; }

// Keeps a vector in a register; otherwise compilers fold the load into each use and repeat it.
HF_INLINE void hold(F<BLOCK_LANES>& a) {
#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVX2)
    asm("" : "+v"(a.v));
#elif defined(HOPFUSE_ISA_NEON)
    asm("" : "+w"(a.v));
#else
    (void)a;
#endif
}

// Continues BLOCK_LANES of the 16 sums of each score, from `lane` on. Rows are (steps, 16) each, queries (steps, Q, 16), sums
// (BLOCK_ROWS, Q, 16).
template <int Q>
HF_INLINE void block_lanes(const float* const* rows, const float* queries, int32_t steps, int lane, bool is_first,
                           float* sums) {
    using V = F<BLOCK_LANES>;
    V acc[BLOCK_ROWS][Q];
    const float* row[BLOCK_ROWS];
    sums += lane, queries += lane;
    HF_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
        row[r] = rows[r] + lane;
        HF_UNROLL for (int j = 0; j < Q; ++j) acc[r][j] = is_first ? V::zero() : V::load(sums + (r * Q + j) * 16);
    }
    for (int64_t i = 0; i < int64_t{steps} * 16; i += 16, queries += Q * 16) {
        V x[BLOCK_ROWS];
        HF_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) x[r] = V::load(row[r] + i);
        HF_UNROLL for (int j = 0; j < Q; ++j) {
            V q = V::load(queries + j * 16);
            hold(q);
            HF_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) acc[r][j] = V::fma(q, x[r], acc[r][j]);
        }
    }
    HF_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) HF_UNROLL for (int j = 0; j < Q; ++j)
        V::store(sums + (r * Q + j) * 16, acc[r][j]);
}

// Continues all 16 sums, for 1 .. Q queries.
template <int Q>
void block_sums(int count, const float* const* rows, const float* queries, int32_t steps, bool is_first, float* sums) {
    if constexpr (Q > 1)
        if (count < Q) return block_sums<Q - 1>(count, rows, queries, steps, is_first, sums);
    for (int lane = 0; lane < 16; lane += BLOCK_LANES) block_lanes<Q>(rows, queries, steps, lane, is_first, sums);
}

// Adds the trees of four scores, from their 16 sums each.
HF_INLINE F<4> add_trees(const float* sums) {
#if defined(HOPFUSE_ISA_AVX512) || defined(HOPFUSE_ISA_AVX2)
    __m128 four[4];
    HF_UNROLL for (int j = 0; j < 4; ++j) {
        const __m256 eight = _mm256_add_ps(_mm256_loadu_ps(sums + 16 * j), _mm256_loadu_ps(sums + 16 * j + 8));
        four[j] = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    }
    const __m128 a = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    const __m128 b = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    return {_mm_add_ps(_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd))};
#else
    float out[4];
    for (int j = 0; j < 4; ++j) out[j] = add_tree(F<16>::load(sums + 16 * j));
    return F<4>::load(out);
#endif
}

// Loads 16 dimensions from p on, of which `present` exist; the others are 0.
template <class Row>
HF_INLINE F<16> load_some(const typename Row::Element* p, int32_t present) {
    if (present >= 16) return Row::load(p);
    typename Row::Element tail[16] = {};
    for (int32_t i = 0; i < present; ++i) tail[i] = p[i];
    return Row::load(tail);
}

// Reads steps begin .. end - 1 of a vector: copies them as float32 to `out`, if given, `stride` floats apart, and continues
// the vector's sums of squares. Prefetches `ahead` bytes on.
template <class Row>
HF_INLINE void read_steps(const typename Row::Element* x, int32_t dim, int32_t begin, int32_t end, int64_t stride,
                          int64_t ahead, float* out, float* squares) {
    F<16> sum = begin == 0 ? F<16>::zero() : F<16>::load(squares);
    for (int32_t s = begin; s < end; ++s) {
        prefetch_beyond(x + s * 16, ahead);
        const F<16> v = load_some<Row>(x + s * 16, dim - s * 16);
        if (out != nullptr) F<16>::store(out + (s - begin) * stride, v);
        sum = F<16>::fma(v, v, sum);
    }
    F<16>::store(squares, sum);
}

// The 16 sums of one row with each of 1 .. ROW_QUERIES queries, (Q, 16), for few queries, where blocks reuse nothing. With
// `has_squares`, the row's sums of squares follow.
#if defined(HOPFUSE_ISA_AVX512)
constexpr int ROW_QUERIES = 8;
#else
constexpr int ROW_QUERIES = 4;
#endif

// Queries packed as (steps, Q, 16), or each in its own place.
struct PackedQueries {
    const float* packed;
    HF_MEMBER F<16> load(int queries, int j, int32_t i, int32_t) const {
        return F<16>::load(packed + i * queries + j * 16);
    }
};

struct QueriesApart {
    const float* const* queries;
    HF_MEMBER F<16> load(int, int j, int32_t i, int32_t present) const {
        return load_some<Float32Row>(queries[j] + i, present);
    }
};

template <class Row, bool has_squares, class Queries, int Q = ROW_QUERIES>
void row_sums(int count, const typename Row::Element* x, const Queries& queries, int32_t dim, int64_t ahead,
              float* sums) {
    if constexpr (Q > 1)
        if (count < Q) return row_sums<Row, has_squares, Queries, Q - 1>(count, x, queries, dim, ahead, sums);
    F<16> acc[Q + 1];
    HF_UNROLL for (int j = 0; j <= Q; ++j) acc[j] = F<16>::zero();
    const auto step = [&](int32_t i, int32_t present) __attribute__((always_inline)) {
        const F<16> v = load_some<Row>(x + i, present);
        HF_UNROLL for (int j = 0; j < Q; ++j) acc[j] = F<16>::fma(queries.load(Q, j, i, present), v, acc[j]);
        if constexpr (has_squares) acc[Q] = F<16>::fma(v, v, acc[Q]);
    };
    int32_t i = 0;
    for (; i + 16 <= dim; i += 16) {
        prefetch_beyond(x + i, ahead);
        step(i, 16);
    }
    if (i < dim) step(i, dim - i);
    HF_UNROLL for (int j = 0; j < (has_squares ? Q + 1 : Q); ++j) F<16>::store(sums + j * 16, acc[j]);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
