// Hits as integers that order as they rank, and the best of a stream of them. Included once per instruction set.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "hopfuse/topk_key.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// topk_key.h for any id of an int64: above 63 bits of the id and the sign of zero stand the score's 32. 0 is no hit.
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

// Puts n >= 1 keys in order, and says in which of the two rooms they then are: by the scores' bytes, the lowest first, then
// runs of equal scores by id.
inline RankKey* sort_by_bytes(RankKey* keys, RankKey* room, size_t n) {
    const auto byte_of = [](const RankKey& key, int byte) { return (~uint32_t(key.bits >> 64) >> (8 * byte)) & 255; };
    uint32_t places[4][256] = {};
    for (size_t i = 0; i < n; ++i)
        for (int byte = 0; byte < 4; ++byte) ++places[byte][byte_of(keys[i], byte)];
    for (int byte = 0; byte < 4; ++byte) {
        uint32_t* const place = places[byte];
        if (place[byte_of(keys[0], byte)] == n) continue;  // all have this one
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

// Keeps the best k of the keys that are pushed, k >= 1, of which there will be at most `most`.
class BestKeys {
public:
    BestKeys(int64_t k, size_t most)
        : keys_(std::min(most, size_t(2 * k + 64))), room_(keys_.size() < MANY ? 0 : keys_.size()), k_(size_t(k)) {}

    void clear() { size_ = 0, least_ = {0}, least_score_ = -std::numeric_limits<float>::infinity(); }

    void push(float score, int64_t id) {
        if (score < least_score_) return;  // most are, and need no key
        const RankKey key = RankKey::of(score, id);
        if (key.bits <= least_.bits) return;
        if (size_ == keys_.size()) shrink();
        keys_[size_++] = key;
    }

    // The k-th best; 0 where there are fewer.
    RankKey last() {
        if (size_ >= k_) shrink();
        return least_;
    }

    // The best in order, and how many they are.
    const RankKey* rank(int64_t& count) {
        const bool many = size_ >= MANY;
        if (!many && size_ > k_) shrink();
        count = int64_t(std::min(size_, k_));
        if (many) return sort_by_bytes(keys_.data(), room_.data(), size_);
        std::sort(keys_.data(), keys_.data() + size_, RanksHigher{});
        return keys_.data();
    }

private:
    static constexpr size_t MANY = 256;  // from here on bytes are counted faster than keys are compared

    void shrink() {
        RankKey* const keys = keys_.data();
        std::nth_element(keys, keys + (k_ - 1), keys + size_, RanksHigher{});
        size_ = k_;
        least_ = keys[k_ - 1], least_score_ = least_.score();
    }

    Vec<RankKey> keys_, room_;
    size_t k_, size_ = 0;
    RankKey least_ = {0};  // of those that are kept, or 0 while any key may be
    float least_score_ = 0.0f;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
