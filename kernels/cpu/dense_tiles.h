// 8-bit codes of rows, one tile at a time, with the norms that bound their error (hopfuse/dense_topk.h, ROW CODES). Included
// once per instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dense_blocks.h"
#include "dense_encode.h"
#include "dense_search.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// Rows that are coded together: a group of dimensions of one row is a word, and four words are 16 bytes of a tile.
constexpr int QUAD = 4;

// Writes the codes c + 128 of 16 dimensions of a quad to (group, row, dimension), for `groups` groups, and adds their
// squares to (4 groups, row). `scaled` has the values divided by the scale and receives the nearest codes, as floats.
HF_INLINE void put_codes(F<16>* scaled, int groups, uint8_t* out, int32_t* squares) {
#if defined(HOPFUSE_ISA_AVX512)
    __m512i whole[QUAD];
    HF_UNROLL for (int r = 0; r < QUAD; ++r) {
        whole[r] = _mm512_cvtps_epi32(scaled[r].v);
        scaled[r].v = _mm512_cvtepi32_ps(whole[r]);
    }
    const __m512i codes =
        _mm512_packs_epi16(_mm512_packs_epi32(whole[0], whole[1]), _mm512_packs_epi32(whole[2], whole[3]));
    const __m512i size = _mm512_abs_epi8(codes), sums = _mm512_loadu_si512(squares);
    _mm512_storeu_si512(squares, _mm512_dpbusd_epi32(sums, size, size));
    alignas(64) uint8_t bytes[64];
    _mm512_store_si512(bytes, _mm512_xor_si512(codes, _mm512_set1_epi8(-128)));
    for (int g = 0; g < groups; ++g) std::memcpy(out + g * DENSE_TILE * DENSE_GROUP, bytes + g * 16, 16);
#elif defined(HOPFUSE_ISA_AVX2)
    __m256i whole[QUAD][2];
    HF_UNROLL for (int r = 0; r < QUAD; ++r) {
        whole[r][0] = _mm256_cvtps_epi32(scaled[r].lo.v), whole[r][1] = _mm256_cvtps_epi32(scaled[r].hi.v);
        scaled[r] = {{_mm256_cvtepi32_ps(whole[r][0])}, {_mm256_cvtepi32_ps(whole[r][1])}};
    }
    alignas(32) uint8_t bytes[64];
    HF_UNROLL for (int half = 0; half < 2; ++half) {
        const __m256i codes = _mm256_packs_epi16(_mm256_packs_epi32(whole[0][half], whole[1][half]),
                                                 _mm256_packs_epi32(whole[2][half], whole[3][half]));
        const __m256i size = _mm256_abs_epi8(codes);
        // Two squares of at most 128 x 127 fit 16 bits.
        const __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(size, size), _mm256_set1_epi16(1));
        __m256i* sums = reinterpret_cast<__m256i*>(squares) + half;
        _mm256_storeu_si256(sums, _mm256_add_epi32(_mm256_loadu_si256(sums), four));
        _mm256_store_si256(reinterpret_cast<__m256i*>(bytes) + half, _mm256_xor_si256(codes, _mm256_set1_epi8(-128)));
    }
    for (int g = 0; g < groups; ++g) std::memcpy(out + g * DENSE_TILE * DENSE_GROUP, bytes + g * 16, 16);
#else
    for (int r = 0; r < QUAD; ++r) {
        float value[16];
        F<16>::store(value, scaled[r]);
        for (int i = 0; i < 16; ++i) {
            value[i] = std::min(127.0f, std::max(-127.0f, std::nearbyintf(value[i])));
            const int32_t code = static_cast<int32_t>(value[i]);
            squares[i / DENSE_GROUP * QUAD + r] += code * code;
            if (i / DENSE_GROUP >= groups) continue;
            out[i / DENSE_GROUP * DENSE_TILE * DENSE_GROUP + r * DENSE_GROUP + i % DENSE_GROUP] = uint8_t(code + 128);
        }
        scaled[r] = F<16>::load(value);
    }
#endif
}

// The scales of a tile's rows and the error of their codes.
struct TileNorms {
    float scale[DENSE_TILE], inverse[DENSE_TILE];
    float dot[DENSE_TILE];                     // x . x, canonical
    alignas(64) float errors[DENSE_TILE][16];  // sums of (x - s c)^2, in the order of a canonical score
    double squares[DENSE_TILE];                // sums of c^2, exact
};

template <class Row>
class TileEncoder {
public:
    using Element = typename Row::Element;

    TileEncoder(const DenseVectors& vectors, const DenseCodes& out) : v_(vectors), out_(out) {}

    void encode(int64_t tile) const {
        const int64_t first = tile * DENSE_TILE, groups = group_count(v_.dim);
        uint8_t* codes = out_.codes + tile * groups * DENSE_TILE * DENSE_GROUP;
        for (int64_t row = std::max(first, v_.count); row < first + DENSE_TILE; ++row)
            out_.scale[row] = out_.error[row] = out_.norm_code[row] = 0.0f;
        if (first >= v_.count)
            return static_cast<void>(std::memset(codes, 128, size_t(groups) * DENSE_TILE * DENSE_GROUP));
        TileNorms norms;
        const Element* x[DENSE_TILE];
        for (int r = 0; r < DENSE_TILE; ++r) {
            x[r] = row_of<Row>(v_, std::min(first + r, v_.count - 1));
            measure(x[r], norms, r);
            if (first + r >= v_.count) norms.scale[r] = norms.inverse[r] = 0.0f;  // all codes 0
        }
        if (!put_norms(first, norms)) return;
        const int32_t steps = step_count(v_.dim);
        for (int32_t step = 0; step < steps; step += NEAR_STEPS)
            for (int r = 0; r < DENSE_TILE; r += QUAD)
                encode_quad(x + r, step, std::min(step + NEAR_STEPS, steps), codes, norms, r);
        for (int r = 0; r < DENSE_TILE && first + r < v_.count; ++r) finish(first + r, norms, r);
    }

private:
    // All rows of a tile take this many steps of 16 dimensions before the next ones, so that its lines stay in cache.
    static constexpr int32_t NEAR_STEPS = 16;

    void measure(const Element* x, TileNorms& norms, int r) const {
        F<16> sum = F<16>::zero(), largest = F<16>::zero();
        for (int32_t i = 0; i < v_.dim; i += 16) {
            prefetch_beyond(x + i, int64_t{DENSE_TILE} * row_bytes<Row>(v_));
            const F<16> value = load_some<Row>(x + i, v_.dim - i);
            sum = F<16>::fma(value, value, sum);
            largest = F<16>::max(largest, F<16>::abs(value));
        }
        norms.dot[r] = add_tree(sum);
        F<16>::store(norms.errors[r], F<16>::zero());
        float sizes[16];
        F<16>::store(sizes, largest);
        for (int i = 1; i < 16; ++i) sizes[0] = sizes[i] > sizes[0] ? sizes[i] : sizes[0];
        const float scale = code_scale(sizes[0], float(DENSE_LEVELS));
        norms.scale[r] = scale;
        norms.inverse[r] = scale > 0.0f ? 1.0f / scale : 0.0f;
        norms.squares[r] = 0.0;
    }

    // Whether all norms are finite; otherwise the tile has no codes.
    bool put_norms(int64_t first, const TileNorms& norms) const {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        bool are_finite = true;
        for (int r = 0; r < DENSE_TILE && first + r < v_.count; ++r) {
            const bool is_finite = norms.dot[r] < infinity;
            out_.norm[first + r] = is_finite ? std::sqrt(norms.dot[r]) : infinity;
            are_finite = are_finite && is_finite;
        }
        return are_finite;
    }

    void encode_quad(const Element* const* x, int32_t begin, int32_t end, uint8_t* codes, TileNorms& norms,
                     int first) const {
        const int32_t groups = group_count(v_.dim);
        alignas(64) int32_t squares[16] = {};
        F<16> error[QUAD];
        HF_UNROLL for (int r = 0; r < QUAD; ++r) error[r] = F<16>::load(norms.errors[first + r]);
        for (int32_t step = begin; step < end; ++step) {
            F<16> value[QUAD], code[QUAD];
            HF_UNROLL for (int r = 0; r < QUAD; ++r) {
                value[r] = load_some<Row>(x[r] + step * 16, v_.dim - step * 16);
                code[r] = F<16>::mul(value[r], F<16>::all(norms.inverse[first + r]));
            }
            uint8_t* out = codes + (int64_t{step} * 4 * DENSE_TILE + first) * DENSE_GROUP;
            put_codes(code, std::min(groups - step * 4, 4), out, squares);
            HF_UNROLL for (int r = 0; r < QUAD; ++r) {
                const F<16> gap = F<16>::fma(F<16>::all(-norms.scale[first + r]), code[r], value[r]);
                error[r] = F<16>::fma(gap, gap, error[r]);
            }
        }
        for (int r = 0; r < QUAD; ++r) {
            F<16>::store(norms.errors[first + r], error[r]);
            for (int g = 0; g < 4; ++g) norms.squares[first + r] += squares[g * QUAD + r];
        }
    }

    void finish(int64_t row, const TileNorms& norms, int r) const {
        const CodeBounds bounds = code_bounds(norms.scale[r], norms.dot[r], add_tree(F<16>::load(norms.errors[r])),
                                              norms.squares[r], v_.dim, v_.cosine, out_.norm[row]);
        out_.scale[row] = bounds.scale, out_.error[row] = bounds.error, out_.norm_code[row] = bounds.norm_code;
    }

    const DenseVectors& v_;
    const DenseCodes& out_;
};

template <class Row>
void encode_all(const DenseVectors& v, const DenseCodes& out, const Execution& execution) {
    const TileEncoder<Row> encoder(v, out);
    parallel_for(tile_count(v.count), execution, [&](int64_t tile, int) { encoder.encode(tile); });
}

// As encode_some.
template <class Row>
bool encode_tiles(const DenseVectors& v, int64_t begin, int64_t end, const DenseCodes& room) {
    DenseVectors some = v;
    const int64_t first = std::min(begin * DENSE_TILE, v.count);
    some.data = row_of<Row>(v, first);
    some.count = std::min(end * DENSE_TILE, v.count) - first;
    const TileEncoder<Row> encoder(some, room);
    for (int64_t tile = 0; tile < end - begin; ++tile) encoder.encode(tile);
    const float longest = std::sqrt(DENSE_SOUND);
    bool is_sound = true;
    for (int64_t row = 0; row < some.count; ++row) is_sound &= room.norm[row] <= longest;
    return is_sound;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
