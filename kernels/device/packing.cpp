#include "packing.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "planted.h"
#include "ppr_graph.h"

namespace hopfuse::device {

namespace {

// Numbers distinct weights, by their bits, in the order in which they come.
class WeightCodes {
public:
    explicit WeightCodes(int64_t most) : most_(static_cast<size_t>(most)), slots_(2 * std::bit_ceil(most_), FREE) {}

    // The number of a weight, which is counted; -1: there are too many.
    int32_t add(float weight) {
        const uint32_t bits = std::bit_cast<uint32_t>(weight);
        size_t at = (bits * 0x9e3779b1u >> 8) & (slots_.size() - 1);
        while (slots_[at] != FREE && std::bit_cast<uint32_t>(weights[static_cast<size_t>(slots_[at])]) != bits)
            at = (at + 1) & (slots_.size() - 1);
        if (slots_[at] == FREE) {
            if (weights.size() == most_) return -1;
            slots_[at] = static_cast<int32_t>(weights.size());
            weights.push_back(weight), counts.push_back(0);
        }
        ++counts[static_cast<size_t>(slots_[at])];
        return slots_[at];
    }

    std::vector<float> weights;
    std::vector<int64_t> counts;

private:
    static constexpr int32_t FREE = -1;
    size_t most_;
    std::vector<int32_t> slots_;
};

}  // namespace

int32_t column_bits(int64_t num_nodes) {
    return std::max(1,
                    static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, num_nodes) - 1))));
}

int64_t code_count(int64_t num_nodes, int64_t most) {
    return std::min(most, int64_t{1} << (32 - column_bits(num_nodes)));
}

PackedRows::PackedRows(const HostRows& rows, int64_t num_nodes, int64_t most) {
    if (rows.weight.empty() || most == 0) return;
    WeightCodes found(code_count(num_nodes, most));
    std::vector<int32_t> own(rows.weight.size());
    for (size_t e = 0; e < own.size(); ++e)
        if ((own[e] = found.add(rows.weight[e])) < 0) return;
    std::vector<int32_t> by_count(found.weights.size()), code(by_count.size());
    std::iota(by_count.begin(), by_count.end(), 0);
    std::stable_sort(by_count.begin(), by_count.end(), [&](int32_t a, int32_t b) {
        return found.counts[static_cast<size_t>(a)] > found.counts[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < by_count.size(); ++i) {
        code[static_cast<size_t>(by_count[i])] = static_cast<int32_t>(HOPFUSE_PLANT(68, i, i ^ 1));
        of_code.push_back(found.weights[HOPFUSE_PLANT(67, static_cast<size_t>(by_count[i]), i)]);
    }
    code_shift = column_bits(num_nodes);
    for (size_t e = 0; e < own.size(); ++e)
        own[e] = static_cast<int32_t>(static_cast<uint32_t>(code[static_cast<size_t>(own[e])]) << code_shift |
                                      static_cast<uint32_t>(rows.indices[e]));
    word = std::move(own);
}

HostRows PackedRows::stored(const HostRows& rows) const {
    return code_shift == 0 ? rows : HostRows{rows.indptr, word, of_code, rows.edge_type};
}

}  // namespace hopfuse::device
