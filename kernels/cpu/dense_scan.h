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
    const QueryElement* codes;  // padded to whole groups
    float scale, norm, error;
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
    explicit Candidates(int64_t k) : k_(k), limit_(size_t(2 * k + 256)) {}

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
        limit_ = 2 * kept_.size() > size_t(2 * k_ + 256) ? 2 * kept_.size() : size_t(2 * k_ + 256);
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
    if (QUERY_LEVELS == DENSE_LEVELS) return DENSE_LEVELS;
    double sum = 0.0, largest = 0.0;
    for (int32_t i = 0; i < dim; ++i) {
        const double size = std::fabs(double(q[i]));
        sum += size;
        if (size > largest) largest = size;
    }
    const double fit = (DENSE_CODE_SUM - 0.5 * dim) / (1.000001 * sum / largest);  // 0 / 0 for a query of zeros
    if (!(fit > DENSE_LEVELS)) return DENSE_LEVELS;
    return fit < QUERY_LEVELS ? static_cast<int32_t>(fit) : QUERY_LEVELS;
}

// c_q . c_x of a tile's rows, without the contribution of the + 128 in row codes.
HF_INLINE F<16> without_offset(const int32_t* dots, int32_t offset) {
    alignas(64) float real[16];
    for (int r = 0; r < 16; ++r) real[r] = static_cast<float>(dots[r] - offset);
    return F<16>::load(real);
}

// Rows first .. end - 1 of a corpus, and the codes of their tiles.
struct CodedRows {
    DenseCodes codes;
    int64_t first, end;
};

// Tests the tiles of P parts against Q queries.
template <int P, int Q>
void scan_tiles(const CodedRows& rows, const QueryCode* queries, int64_t query_stride, int64_t tile, int32_t groups,
                Candidates* candidates) {
    constexpr int T = tiles_of(P);
    alignas(64) int32_t dots[T * Q * DENSE_TILE];
    const uint8_t* codes = rows.codes.codes + tile * groups * GROUP_BYTES;
    code_dots<P, Q>(codes, groups, queries[0].codes, query_stride, dots);
    for (int t = 0; t < T; ++t) {
        const int64_t first = (tile + t) * DENSE_TILE;
        const F<16> scale = F<16>::load(rows.codes.scale + first);
        const F<16> error = F<16>::load(rows.codes.error + first);
        const F<16> norm_code = F<16>::load(rows.codes.norm_code + first);
        for (int j = 0; j < Q; ++j) {
            const QueryCode& q = queries[j];
            const F<16> approx =
                F<16>::mul(without_offset(dots + (t * Q + j) * 16, q.offset), F<16>::mul(scale, F<16>::all(q.scale)));
            const F<16> width =
                F<16>::fma(F<16>::all(q.norm), error, F<16>::fma(F<16>::all(q.error), norm_code, F<16>::all(1e-36f)));
            const F<16> upper = F<16>::add(approx, width);
            uint32_t hits = F<16>::ge(upper, F<16>::all(candidates[j].threshold()));
            if (hits == 0) continue;
            float above[16], below[16];
            F<16>::store(above, upper);
            F<16>::store(below, F<16>::sub(approx, width));
            for (; hits != 0; hits &= hits - 1) {
                const int r = __builtin_ctz(hits);
                const int64_t row = rows.first + first + r;
                if (row >= rows.end || (q.mask != nullptr && q.mask[row] == 0)) continue;
                candidates[j].push({above[r], below[r], row});
            }
        }
    }
}

// Tests tiles begin .. end (whole block steps) against all queries, in the widest groups that fit the registers: with wider
// groups codes are read less often.
inline void scan_block(const CodedRows& rows, const QueryCode* queries, int64_t batch, int64_t query_stride,
                       int64_t begin, int64_t end, int32_t groups, Candidates* candidates) {
    int64_t j = 0;
    Products::Shapes::each([&](auto shape) {
        constexpr int P = decltype(shape)::parts, Q = decltype(shape)::queries, T = tiles_of(P);
        static_assert(DENSE_BLOCK_STEP % T == 0 && DENSE_STEP % DENSE_BLOCK_STEP == 0,
                      "blocks of tiles are whole steps");
        for (; j + Q <= batch; j += Q)
            for (int64_t tile = begin; tile < end; tile += T)
                scan_tiles<P, Q>(rows, queries + j, query_stride, tile, groups, candidates + j);
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
