// The inputs of register blocks: rows of a list, and queries packed side by side. Included once per instruction set.
#pragma once

#include <cmath>

#include "dense_blocks.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The rows of a pass: all, or those of an ascending list.
struct RowList {
    const int64_t* ids;
    int64_t count;
    int64_t at(int64_t i) const { return ids == nullptr ? i : ids[i]; }
};

// Queries packed for blocks, in consecutive groups of nearly equal size, each (steps, queries of the group, 16).
struct QueryPanels {
    const int64_t* queries;  // their numbers, or null: 0 .. count - 1
    int64_t count;
    int32_t steps;
    float* packed;  // (count, steps, 16)
    float* norms;   // (count,)

    int64_t groups() const { return (count + BLOCK_QUERIES - 1) / BLOCK_QUERIES; }
    int64_t first(int64_t group) const { return group * count / groups(); }
    int size(int64_t group) const { return static_cast<int>(first(group + 1) - first(group)); }
    const float* piece(int64_t group, int32_t step) const {
        return packed + (first(group) * steps + int64_t{step} * size(group)) * 16;
    }

    int64_t number(int64_t j) const { return queries == nullptr ? j : queries[j]; }

    // Packs a group's queries from the rows of a call and computes their canonical norms.
    void pack(const float* data, int32_t dim, int64_t group) const {
        const int size = this->size(group);
        float squares[16];
        for (int j = 0; j < size; ++j) {
            const float* q = data + number(first(group) + j) * dim;
            float* out = packed + first(group) * steps * 16 + j * 16;
            read_steps<Float32Row>(q, dim, 0, steps, size * 16, 0, out, squares);
            norms[first(group) + j] = std::sqrt(add_tree(F<16>::load(squares)));
        }
    }
};

}  // namespace hopfuse::HOPFUSE_ISA_NS
