// Hits as integers whose order is their rank, and the best of a stream of them. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "hopfuse/topk_key.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// As topk_key.h, but for any int64 id: the 32 bits of the score are above 63 bits of the id and the sign of zero. 0 is no
// hit.
struct RankKey {
    __extension__ using Bits = unsigned __int128;
    Bits bits;

    static RankKey of(float score, int64_t id) {
        const uint64_t key = make_topk_key(score, 0), place = (LAST - uint64_t(id)) << 1;
        return {(Bits{key >> 32} << 64) | place | (key & 1)};
    }
    float score() const { return topk_key_score((uint64_t(bits >> 64) << 32) | (uint64_t(bits) & 1)); }
    int64_t id() const { return int64_t(LAST - (uint64_t(bits) >> 1)); }

private:
    static constexpr uint64_t LAST = 0x7fffffffffffffff;
};

struct RanksHigher {
    bool operator()(const RankKey& a, const RankKey& b) const { return a.bits > b.bits; }
};

// Sorts n >= 1 keys and returns the buffer, `keys` or `room`, that has the result: first by bytes of the scores, lowest byte
// first, then runs of equal scores by id.
inline RankKey* sort_by_bytes(RankKey* keys, RankKey* room, size_t n) {
    const auto byte_of = [](const RankKey& key, int byte) { return (~uint32_t(key.bits >> 64) >> (8 * byte)) & 255; };
    uint32_t places[4][256] = {};
    for (size_t i = 0; i < n; ++i)
        for (int byte = 0; byte < 4; ++byte) ++places[byte][byte_of(keys[i], byte)];
    for (int byte = 0; byte < 4; ++byte) {
        uint32_t* const place = places[byte];
        if (place[byte_of(keys[0], byte)] == n) continue;  // all keys have the same byte
        for (uint32_t value = 0, before = 0; value < 256; ++value) before += std::exchange(place[value], before);
        for (size_t i = 0; i < n; ++i) room[place[byte_of(keys[i], byte)]++] = keys[i];
        std::swap(keys, room);
    }
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && keys[end].bits >> 64 == keys[begin].bits >> 64;) ++end;
        if (end - begin > 1) std::sort(keys + begin, keys + end, RanksHigher{});
    }
    return keys;
}

// Keeps the best k >= 1 of the keys that are pushed, at most `most` in total.
class BestKeys {
public:
    BestKeys(int64_t k, size_t most)
        : keys_(std::min(most, size_t(2 * k + 64))), room_(keys_.size() < MANY ? 0 : keys_.size()), k_(size_t(k)) {}

    void clear() { size_ = 0, least_ = {0}, least_score_ = -std::numeric_limits<float>::infinity(); }

    void push(float score, int64_t id) {
        if (score < least_score_) return;  // true for most candidates, which then need no key
        const RankKey key = RankKey::of(score, id);
        if (key.bits <= least_.bits) return;
        if (size_ == keys_.size()) shrink();
        keys_[size_++] = key;
    }

    // The k-th best, or 0 if there are fewer.
    RankKey last() {
        if (size_ >= k_) shrink();
        return least_;
    }

    // The best keys in order, and their number.
    const RankKey* rank(int64_t& count) {
        const bool many = size_ >= MANY;
        if (!many && size_ > k_) shrink();
        count = int64_t(std::min(size_, k_));
        if (many) return sort_by_bytes(keys_.data(), room_.data(), size_);
        std::sort(keys_.data(), keys_.data() + size_, RanksHigher{});
        return keys_.data();
    }

private:
    static constexpr size_t MANY = 256;  // from this many keys on, sorting by bytes is faster than comparing keys

    void shrink() {
        RankKey* const keys = keys_.data();
        std::nth_element(keys, keys + (k_ - 1), keys + size_, RanksHigher{});
        size_ = k_;
        least_ = keys[k_ - 1], least_score_ = least_.score();
    }

    Vec<RankKey> keys_, room_;
    size_t k_, size_ = 0;
    RankKey least_ = {0};  // the smallest kept key, or 0 while any key is accepted
    float least_score_ = 0.0f;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
