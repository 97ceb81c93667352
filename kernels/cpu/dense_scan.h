// The scan over codes. It finds every row that the bound cannot exclude from a query's best k. Included once per
// instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "code_dots.h"
#include "dense_encode.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct QueryCode {
    const QueryElement* codes;  // its vectors, padded to whole steps
    float scale, norm, error;
    float inverse;        // of the scale; 0 if that is too small
    int32_t offset;       // 128 * sum of the codes, the contribution of the + 128 in row codes
    const uint8_t* mask;  // rows that may be hits, or null
};

struct Candidate {
    float upper, lower;
    int64_t row;
};

struct HigherLower {
    bool operator()(const Candidate& a, const Candidate& b) const { return a.lower > b.lower; }
};

struct HigherUpper {
    bool operator()(const Candidate& a, const Candidate& b) const {
        return a.upper > b.upper || (a.upper == b.upper && a.row < b.row);
    }
};

// Rows whose upper bound reaches the k-th best lower bound seen so far.
class Candidates {
public:
    explicit Candidates(int64_t k) : k_(k), limit_(size_t(2 * k + 64)) {}

    float threshold() const { return threshold_; }
    void push(const Candidate& candidate) {
        kept_.push_back(candidate);
        if (kept_.size() >= limit_) prune();
    }

    void prune() {
        const size_t k = size_t(k_);
        if (kept_.size() >= k) {
            std::nth_element(kept_.begin(), kept_.begin() + std::ptrdiff_t(k - 1), kept_.end(), HigherLower{});
            if (kept_[k - 1].lower > threshold_) threshold_ = kept_[k - 1].lower;
            size_t size = 0;
            for (size_t i = 0; i < kept_.size(); ++i)
                if (kept_[i].upper >= threshold_) kept_[size++] = kept_[i];
            kept_.resize(size);
        }
        limit_ = 2 * kept_.size() > size_t(2 * k_ + 64) ? 2 * kept_.size() : size_t(2 * k_ + 64);
    }

    Vec<Candidate>& rows() { return kept_; }

private:
    int64_t k_;
    size_t limit_;
    float threshold_ = -std::numeric_limits<float>::infinity();
    Vec<Candidate> kept_;
};

// The levels of a query's codes: as many as keep its sums of products within int32 (hopfuse/dense_topk.h).
HF_INLINE int32_t query_levels(const float* q, int32_t dim) {
    const int32_t most = most_levels(dim);
    if (most == DENSE_LEVELS) return most;
    double sum = 0.0, largest = 0.0;
    for (int32_t i = 0; i < dim; ++i) {
        const double size = std::fabs(double(q[i]));
        sum += size;
        if (size > largest) largest = size;
    }
    const double fit = (DENSE_CODE_SUM - 0.5 * dim) / (1.000001 * sum / largest);  // 0 / 0 for a query of zeros
    if (!(fit > DENSE_LEVELS)) return DENSE_LEVELS;
    return fit < most ? static_cast<int32_t>(fit) : most;
}

// The inverse of a scale, or 0, a lower bound that needs no care with subnormal numbers.
HF_INLINE float inverse_of(float scale) { return scale >= 1e-30f ? 1.0f / scale : 0.0f; }

// c_q . c_x of a tile's rows, from the dot products with each of V vectors, without the contribution of the + 128 in row
// codes. Only the result, not 256 times the first product, is sure to fit int32.
template <int V>
HF_INLINE F<16> without_offset(const int32_t* dots, int32_t offset) {
    alignas(64) float real[16];
    for (int r = 0; r < 16; ++r) {
        uint32_t dot = static_cast<uint32_t>(dots[r]);
        if constexpr (V == 2) dot = 256 * dot + static_cast<uint32_t>(dots[16 + r]);
        real[r] = static_cast<float>(static_cast<int32_t>(dot - static_cast<uint32_t>(offset)));
    }
    return F<16>::load(real);
}

// Rows first .. end - 1 of a corpus, and the codes of their tiles.
struct CodedRows {
    DenseCodes codes;
    int64_t first, end;
};

// What rules out most rows of T tiles at little cost: the inverses of their scales, and the largest error and norm. The margins
// exceed the rounding of test_tile() and of this.
template <int T>
struct RoughBound {
    static constexpr float margin = 1.0f / (1 << 20);
    F<16> inverse[T];
    float error = 0.0f, norm_code = 0.0f;

    RoughBound(const DenseCodes& codes, int64_t first) {
        for (int t = 0; t < T; ++t) {
            float inverses[16];
            for (int r = 0; r < 16; ++r) {
                const int64_t row = first + t * DENSE_TILE + r;
                inverses[r] = inverse_of(codes.scale[row]) * (1.0f - 2.0f * margin);
                error = codes.error[row] > error ? codes.error[row] : error;
                norm_code = codes.norm_code[row] > norm_code ? codes.norm_code[row] : norm_code;
            }
            inverse[t] = F<16>::load(inverses);
        }
        error *= 1.0f + margin, norm_code *= 1.0f + margin;
    }

    // The product with a row's inverse scale is a lower bound of the dot product of any row whose upper bound reaches the
    // threshold. Not above 0 if there is none.
    HF_MEMBER float least(const QueryCode& q, float threshold) const {
        const float gap = threshold * (1.0f - margin) - q.norm * error - q.error * norm_code;
        return gap > 1e-30f ? gap * q.inverse : 0.0f;
    }
};

// Tests the rows of a tile against a query, by the dot products with its V vectors.
template <int V>
void test_tile(const CodedRows& rows, int64_t tile, const QueryCode& q, const int32_t* dots, Candidates& candidates) {
    const int64_t first = tile * DENSE_TILE;
    const F<16> scale = F<16>::load(rows.codes.scale + first), error = F<16>::load(rows.codes.error + first);
    const F<16> norm_code = F<16>::load(rows.codes.norm_code + first);
    const F<16> approx = F<16>::mul(without_offset<V>(dots, q.offset), F<16>::mul(scale, F<16>::all(q.scale)));
    const F<16> width =
        F<16>::fma(F<16>::all(q.norm), error, F<16>::fma(F<16>::all(q.error), norm_code, F<16>::all(1e-36f)));
    const F<16> upper = F<16>::add(approx, width);
    uint32_t hits = F<16>::ge(upper, F<16>::all(candidates.threshold()));
    if (hits == 0) return;
    float above[16], below[16];
    F<16>::store(above, upper);
    F<16>::store(below, F<16>::sub(approx, width));
    for (; hits != 0; hits &= hits - 1) {
        const int r = __builtin_ctz(hits);
        const int64_t row = rows.first + first + r;
        if (row >= rows.end || (q.mask != nullptr && q.mask[row] == 0)) continue;
        candidates.push({above[r], below[r], row});
    }
}

// Tests T tiles against the queries of Q vectors, V of each, by their dot products.
template <int T, int Q, int V>
HF_INLINE void test_tiles(const CodedRows& rows, int64_t tile, const QueryCode* queries, const int32_t* dots,
                          Candidates* candidates) {
    const RoughBound<T> bound(rows.codes, tile * DENSE_TILE);
    for (int j = 0; j < Q / V; ++j) {
        const float least = bound.least(queries[j], candidates[j].threshold());
        uint32_t may_reach[T];
        HF_UNROLL for (int t = 0; t < T; ++t) {
            const F<16> dot = without_offset<V>(dots + (t * Q + j * V) * DENSE_TILE, queries[j].offset);
            may_reach[t] = F<16>::ge(dot, F<16>::mul(F<16>::all(least), bound.inverse[t]));
        }
        HF_UNROLL for (int t = 0; t < T; ++t) if (may_reach[t] != 0 || !(least > 0.0f))
            test_tile<V>(rows, tile + t, queries[j], dots + (t * Q + j * V) * DENSE_TILE, candidates[j]);
    }
}

// Tests tiles begin .. end (whole block steps) against all queries, in the widest groups that fit the registers: with wider
// groups codes are read less often. Some tiles at a time, so that short vectors stay in the L1 cache for all queries while the
// next are prefetched.
template <int V>
void scan_block(const CodedRows& rows, const QueryCode* queries, int64_t batch, int64_t query_stride, int64_t begin,
                int64_t end, int32_t groups, Candidates* candidates) {
    const DotRegisters registers(batch * V);
    const int64_t near = groups <= 128 ? DENSE_BLOCK_STEP : end - begin, tile_bytes = groups * GROUP_BYTES;
    const int64_t calls = (batch * V + 31) / 32, lines = (32 + calls - 1) / calls;
    for (int64_t first = begin; first < end; first += near) {
        int64_t j = 0, call = 0;
        Products::Shapes::each([&](auto shape) {
            constexpr int P = decltype(shape)::parts, Q = decltype(shape)::queries, T = tiles_of(P);
            static_assert(DENSE_BLOCK_STEP % T == 0 && DENSE_STEP % DENSE_BLOCK_STEP == 0,
                          "blocks of tiles are whole steps");
            if constexpr (Q % V == 0)
                for (; j + Q / V <= batch; j += Q / V, ++call)
                    for (int64_t tile = first; tile < first + near; tile += T) {
                        alignas(64) int32_t dots[T * Q * DENSE_TILE];
                        const uint8_t* codes = rows.codes.codes + tile * tile_bytes;
                        const Ahead ahead{near * tile_bytes + call * lines * groups / 16 * 64, int32_t(lines)};
                        code_dots<P, Q>(codes, groups, queries[j].codes, query_stride, dots, ahead);
                        test_tiles<T, Q, V>(rows, tile, queries + j, dots, candidates + j);
                    }
        });
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
