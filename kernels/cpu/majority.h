// The scores of fusion/condorcet.h, from all pairs of documents of a query in all lists. Included once per instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "hopfuse/integers.h"
#include "vec.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The ranks of all documents in all lists, and the scores that follow from them, in O(documents^2 lists).
class Majorities {
public:
    Majorities(size_t most, size_t lists) : ranks_((most + BLOCK) * lists), weights_(lists) {}

    // Sets the number of documents, and the number of lists and their weights, before any ranks.
    void start(int32_t documents, int32_t lists, const float* weights) {
        documents_ = documents, lists_ = lists;
        stride_ = (size_t(documents) + BLOCK - 1) / BLOCK * BLOCK;
        whole_ = true;
        float total = 0.0f;
        for (int32_t l = 0; l < lists; ++l) {
            weights_[size_t(l)] = weights[l];
            total = total + weights[l];
            whole_ = whole_ && weights[l] == std::floor(weights[l]);
        }
        whole_ = whole_ && total < 0x1p24f;
        for (int32_t l = 0; l < lists; ++l) {
            std::fill_n(row(l), documents, std::numeric_limits<float>::infinity());
            std::fill(row(l) + documents, row(l) + stride_, std::numeric_limits<float>::quiet_NaN());
        }
    }

    void rank(int32_t document, int32_t list, float position) { row(list)[document] = position; }

    // The number of documents that this one beats, plus half of those that it ties with.
    float score(int32_t document) const {
        // float32 represents all sums of integer weights, and float64 those of other weights.
        return 0.5f * static_cast<float>(whole_ ? halves<float>(document) : halves<double>(document));
    }

private:
    static constexpr size_t BLOCK = 64;

    const float* row(int32_t list) const { return ranks_.data() + size_t(list) * stride_; }
    float* row(int32_t list) { return ranks_.data() + size_t(list) * stride_; }

    template <class Sum>
    int32_t halves(int32_t document) const {
        int32_t counts[BLOCK] = {};
        for (size_t begin = 0; begin < stride_; begin += BLOCK) {
            Sum balance[BLOCK] = {};  // as in hopfuse::majority, which adds nothing for a list without preference
            for (int32_t l = 0; l < lists_; ++l) {
                const float* const others = row(l) + begin;
                const float mine = row(l)[document];
                const Sum weight = static_cast<Sum>(weights_[size_t(l)]);
                for (size_t i = 0; i < BLOCK; ++i) {
                    const float other = others[i];
                    const Sum below = mine > other ? -weight : Sum(0);
                    balance[i] = balance[i] + (mine < other ? weight : below);
                }
            }
            for (size_t i = 0; i < BLOCK; ++i)
                counts[i] += int32_t(balance[i] > Sum(0)) + int32_t(balance[i] >= Sum(0));
        }
        // It ties with itself and with the padding of the last block.
        int32_t total = documents_ - 1 - static_cast<int32_t>(stride_);
        for (size_t i = 0; i < BLOCK; ++i) total += counts[i];
        return total;
    }

    Vec<float> ranks_;
    Vec<float> weights_;
    int32_t documents_ = 0, lists_ = 0;
    size_t stride_ = 0;
    bool whole_ = false;
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
