// The best k of a stream of (score, id) in the total order. Included once per instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hopfuse/scalar.h"

namespace hopfuse::HOPFUSE_ISA_NS {

struct Ranked {
    float score;
    int64_t id;
};

struct RanksBefore {
    bool operator()(const Ranked& a, const Ranked& b) const { return ranks_before(a.score, a.id, b.score, b.id); }
};

// Keeps candidates in a buffer of room(k, most) entries that the caller owns. When the buffer is full, the best k stay and
// the k-th best becomes the threshold. `most` is the largest possible number of candidates.
class TopkBuffer {
public:
    static int64_t room(int64_t k, int64_t most) { return most < 2 * k + 64 ? most : 2 * k + 64; }

    TopkBuffer() = default;
    TopkBuffer(Ranked* buffer, int64_t k, int64_t most, float least)
        : buffer_(buffer), k_(k), room_(room(k, most)), threshold_(least) {}

    // A candidate below this score cannot be among the best k.
    float threshold() const { return threshold_; }

    void push(float score, int64_t id) {
        if (size_ == room_) shrink();
        if (score >= threshold_) buffer_[size_++] = {score, id};
    }

    void shrink() {
        if (size_ <= k_) return;
        std::nth_element(buffer_, buffer_ + (k_ - 1), buffer_ + size_, RanksBefore{});
        size_ = k_;
        if (buffer_[k_ - 1].score > threshold_) threshold_ = buffer_[k_ - 1].score;
    }

    int64_t size() const { return size_; }

private:
    Ranked* buffer_ = nullptr;
    int64_t k_ = 0, room_ = 0, size_ = 0;
    float threshold_ = 0.0f;
};

// Puts the best k of `size` candidates first, in order; returns their number.
inline int64_t rank_best(Ranked* candidates, int64_t size, int64_t k) {
    const int64_t kept = k < size ? k : size;
    if (kept < size) std::nth_element(candidates, candidates + kept, candidates + size, RanksBefore{});
    std::sort(candidates, candidates + kept, RanksBefore{});
    return kept;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
