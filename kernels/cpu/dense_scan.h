// The scan over codes. It finds every row that the bound cannot exclude from a query's best k. Included once per
// instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "code_dots.h"
#include "dense_encode.h"
#include "dense_rows.h"
#include "dense_search.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

using HOPFUSE_ROWS_NS::Candidate;

// The codes that start at a tile.
HF_INLINE DenseCodes codes_from(const DenseCodes& codes, int64_t tile, int32_t dim) {
    const int64_t row = tile * DENSE_TILE;
    return {codes.codes + row * group_count(dim) * DENSE_GROUP, codes.scale + row, codes.error + row,
            codes.norm_code + row, codes.norm + row};
}

struct QueryCode {
    const QueryElement* codes;  // its vectors, padded to whole steps
    float scale, norm, error;
    float inverse;        // of the scale; 0 if that is too small
    int32_t offset;       // 128 * sum of the codes, the contribution of the + 128 in row codes
    const uint8_t* mask;  // rows that may be hits, or null
};

struct Higher {
    bool operator()(float a, float b) const { return a > b; }
};

// Rows whose upper bound reaches the k-th best lower bound seen so far.
class Candidates {
public:
    explicit Candidates(int64_t k) : k_(size_t(k)), limit_(2 * k_ + 64) {}

    float threshold() const { return threshold_; }
    void push(const Candidate& candidate) {
        if (candidate.upper < threshold_) return;
        kept_.push_back(candidate);
        if (best_.size() < k_ || candidate.lower > threshold_) raise(candidate.lower);
        if (kept_.size() >= limit_) prune();
    }

    Vec<Candidate>& rows() { return kept_; }

private:
    size_t k_, limit_;
    float threshold_ = -std::numeric_limits<float>::infinity();
    Vec<Candidate> kept_;
    Vec<float> best_;  // the k best lower bounds, as a heap, lowest first

    void raise(float lower) {
        best_.push_back(lower);
        std::push_heap(best_.begin(), best_.end(), Higher{});
        if (best_.size() > k_) {
            std::pop_heap(best_.begin(), best_.end(), Higher{});
            best_.pop_back();
        }
        if (best_.size() == k_) threshold_ = best_.front();
    }

    void prune() {
        const auto is_below = [this](const Candidate& candidate) { return candidate.upper < threshold_; };
        kept_.erase(std::remove_if(kept_.begin(), kept_.end(), is_below), kept_.end());
        limit_ = std::max(2 * kept_.size(), 2 * k_ + 64);
    }
};

// The levels of a query's codes: as many as keep its sums of products within int32 (hopfuse/dense_topk.h).
HF_INLINE int32_t levels_of(const float* q, int32_t dim) {
    const int32_t most = most_levels(dim);
    if (most == DENSE_LEVELS) return most;
    double sum = 0.0, largest = 0.0;
    for (int32_t i = 0; i < dim; ++i) {
        const double size = std::fabs(double(q[i]));
        sum += size;
        if (size > largest) largest = size;
    }
    return query_levels(sum, largest, dim, most);
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

// Prefetches the norms of a block's rows: a tile has one line of each array, which comes late beside a stream of codes.
HF_INLINE void prefetch_norms(const DenseCodes& codes, int64_t tiles) {
    constexpr int64_t line = DENSE_TILE * int64_t(sizeof(float));
    for (const float* norms : {codes.scale, codes.error, codes.norm_code})
        for (int64_t tile = 0; tile < tiles; ++tile) prefetch_beyond(norms, tile * line);
}

// Tests the rows of a tile against a query, by the dot products with its V vectors.
template <int V>
void test_tile(const CodedRows& rows, int64_t tile, const QueryCode& q, const int32_t* dots, Candidates& candidates) {
    const int64_t first = tile * DENSE_TILE;
    const F<16> scale = F<16>::load(rows.codes.scale + first), error = F<16>::load(rows.codes.error + first);
    const F<16> norm_code = F<16>::load(rows.codes.norm_code + first);
    const F<16> approx = F<16>::mul(without_offset<V>(dots, q.offset), F<16>::mul(scale, F<16>::all(q.scale)));
    const F<16> width = F<16>::fma(F<16>::all(q.norm), error,
                                   F<16>::fma(F<16>::all(q.error), norm_code, F<16>::all(DENSE_CODE_UNDERFLOW)));
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

// Tests T tiles against the queries of Q vectors, V of each, by their dot products. For few queries a rough bound saves
// nothing. `next` is called once per query, for the vectors that tile registers hold.
template <int T, int Q, int V>
HF_INLINE void test_tiles(const CodedRows& rows, int64_t tile, int64_t apart, const QueryCode* queries,
                          const int32_t* dots, Candidates* candidates, NextTiles& next) {
    const auto test = [&](int t, int j) {
        const int32_t* of_query = dots + (t * Q + j * V) * DENSE_TILE;
        test_tile<V>(rows, tile + t * apart, queries[j], of_query, candidates[j]);
    };
    if constexpr (Q <= FEW_VECTORS) {
        for (int t = 0; t < T; ++t)
            for (int j = 0; j < Q / V; ++j) test(t, j);
    } else {
        const RoughBound<T> bound(rows.codes, tile * DENSE_TILE);
        for (int j = 0; j < Q / V; ++j) {
            if constexpr (Q >= REGISTER_VECTORS) next();
            const float least = bound.least(queries[j], candidates[j].threshold());
            uint32_t may_reach[T], any = !(least > 0.0f);
            HF_UNROLL for (int t = 0; t < T; ++t) {
                const F<16> dot = without_offset<V>(dots + (t * Q + j * V) * DENSE_TILE, queries[j].offset);
                may_reach[t] = F<16>::ge(dot, F<16>::mul(F<16>::all(least), bound.inverse[t]));
                any |= may_reach[t];
            }
            if (any == 0) continue;
            HF_UNROLL for (int t = 0; t < T; ++t) if (may_reach[t] != 0 || !(least > 0.0f)) test(t, j);
        }
    }
}

// Tests all tiles of a block against all queries, V vectors of each, in the widest groups that fit the registers: with
// wider groups codes are read less often.
template <int V>
class BlockScan {
public:
    BlockScan(const CodedRows& rows, const QueryCode* queries, int64_t batch, int64_t query_stride, int32_t groups,
              Candidates* candidates)
        : rows_(rows), queries_(queries), batch_(batch), query_stride_(query_stride), groups_(groups),
          register_calls_((batch * V + REGISTER_VECTORS) / (2 * REGISTER_VECTORS)), candidates_(candidates) {}

    void run(int64_t tiles) const {
        const DotRegisters registers(batch_ * V);
        prefetch_norms(rows_.codes, tiles);
        const int64_t near = batch_ * V > FEW_VECTORS && are_near() ? DENSE_BLOCK_STEP : tiles;
        for (int64_t first = 0; first < tiles; first += near) scan(first, near);
    }

private:
    static constexpr int32_t SHORT = 128;  // groups of a vector of which some tiles fit the L1 cache

    // Whether some tiles at a time are scanned for all queries, so that they stay in a near cache while the next are
    // prefetched. Not with long vectors and many queries, which would then be read too often.
    bool are_near() const {
        constexpr int64_t bytes = 256 << 10;
        return groups_ <= SHORT || batch_ * V * groups_ * DENSE_GROUP <= bytes;
    }

    void scan(int64_t first, int64_t near) const {
        int64_t j = 0, call = 0;
        Products::Shapes::each([&](auto shape) {
            using S = decltype(shape);
            if constexpr (S::queries % V == 0)
                for (; fits<S>() && j + S::queries / V <= batch_; j += S::queries / V, ++call)
                    scan_with<S>(first, near, j, call);
        });
    }

    // Four tiles of short vectors, their sums and the codes of more than one group of queries do not fit the L1 cache.
    template <class S>
    bool fits() const {
        return S::queries < REGISTER_VECTORS || tiles_of(S::parts) < 4 || groups_ > SHORT || register_calls_ == 1;
    }

    template <class S>
    void scan_with(int64_t first, int64_t near, int64_t j, int64_t call) const {
        constexpr int P = S::parts, Q = S::queries, T = tiles_of(P);
        static_assert(DENSE_BLOCK_STEP % T == 0 && DENSE_STEP % DENSE_BLOCK_STEP == 0,
                      "blocks of tiles are whole steps");
        constexpr bool are_streams = Q <= FEW_VECTORS;
        const int64_t tile_bytes = groups_ * GROUP_BYTES, apart = are_streams ? near / T : 1;
        const int64_t end = first + (are_streams ? apart : near);
        const int64_t steps = register_steps(T, groups_) + Q / V, all_steps = register_calls_ * steps;
        const int64_t lines = all_steps == 0 ? 0 : (T * groups_ + all_steps - 1) / all_steps;
        for (int64_t tile = first; tile < end; tile += are_streams ? 1 : T) {
            alignas(64) int32_t dots[T * Q * DENSE_TILE];
            const uint8_t* codes = rows_.codes.codes + tile * tile_bytes;
            NextTiles next{codes + near * tile_bytes + call * steps * lines * 64, lines};
            code_dots<P, Q>(codes, apart * tile_bytes, groups_, queries_[j].codes, query_stride_, dots, next);
            test_tiles<T, Q, V>(rows_, tile, apart, queries_ + j, dots, candidates_ + j, next);
        }
    }

    const CodedRows& rows_;
    const QueryCode* const queries_;
    const int64_t batch_, query_stride_;
    const int32_t groups_;
    const int64_t register_calls_;
    Candidates* const candidates_;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
