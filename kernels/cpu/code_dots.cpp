// Verifies that this variant's dot products of codes are exact on this processor: compares every kind of block that a scan
// may use with sums in plain arithmetic.
#include "code_dots.h"

#include "kernels.h"

namespace hopfuse::HOPFUSE_ISA_NS {

namespace {

// Two register widths, and more than the unrolling of any loop; for AMX, a whole register and a part of one.
#if defined(HOPFUSE_ISA_AMX)
constexpr int32_t GROUPS = REGISTER_GROUPS + 4;
constexpr int QUERIES = 32;
#else
constexpr int32_t GROUPS = 8;
constexpr int QUERIES = 12;
#endif
constexpr int TILES = DENSE_BLOCK_STEP, DIM = GROUPS * DENSE_GROUP;
constexpr int64_t STRIDE = (DIM + QUERY_STEP - 1) / QUERY_STEP * QUERY_STEP;

enum class Fill { highest, opposite, drawn };

struct Block {
    uint8_t codes[TILES * GROUPS * GROUP_BYTES];
    QueryElement queries[QUERIES * STRIDE] = {};
};

// Codes at the ends of their ranges, where sums are largest, or random ones that include all ends.
Block filled(Fill fill) {
    Block block;
    uint32_t state = 1;
    const auto draw = [&](uint32_t count) {
        state = state * 1664525u + 1013904223u;
        return static_cast<int32_t>((state >> 8) % count);
    };
    for (uint8_t& code : block.codes) code = static_cast<uint8_t>(fill == Fill::drawn ? draw(256) : 255);
    const auto element = [&] {
        const int32_t end = draw(2) == 0 ? LEAST_ELEMENT : MOST_ELEMENT;
        const int32_t drawn = draw(4) == 0 ? end : LEAST_ELEMENT + draw(uint32_t(MOST_ELEMENT - LEAST_ELEMENT) + 1);
        return fill == Fill::drawn ? drawn : fill == Fill::opposite ? LEAST_ELEMENT : MOST_ELEMENT;
    };
    for (int query = 0; query < QUERIES; ++query)
        for (int i = 0; i < DIM; ++i) block.queries[query * STRIDE + i] = static_cast<QueryElement>(element());
    return block;
}

int32_t plain_dot(const Block& block, int tile, int row, int query) {
    int32_t sum = 0;
    for (int i = 0; i < DIM; ++i) {
        const int group = i / DENSE_GROUP, within = i % DENSE_GROUP;
        const int at = ((tile * GROUPS + group) * DENSE_TILE + row) * DENSE_GROUP + within;
        sum += int32_t{block.codes[at]} * block.queries[query * STRIDE + group * DENSE_GROUP + place_in_group(within)];
    }
    return sum;
}

template <int P, int Q>
bool shape_is_exact(const Block& block) {
    static_assert(tiles_of(P) <= TILES && Q <= QUERIES);
    alignas(64) int32_t dots[tiles_of(P) * Q * DENSE_TILE];
    NextTiles next{block.codes, 0};
    code_dots<P, Q>(block.codes, GROUPS * GROUP_BYTES, GROUPS, block.queries, STRIDE, dots, next);
    for (int tile = 0; tile < tiles_of(P); ++tile)
        for (int query = 0; query < Q; ++query)
            for (int row = 0; row < DENSE_TILE; ++row)
                if (dots[(tile * Q + query) * DENSE_TILE + row] != plain_dot(block, tile, row, query)) return false;
    return true;
}

bool is_exact(Fill fill) {
    const Block block = filled(fill);
    const DotRegisters registers(QUERIES);
    bool exact = true;
    Products::Shapes::each(
        [&](auto shape) { exact = exact && shape_is_exact<decltype(shape)::parts, decltype(shape)::queries>(block); });
    return exact;
}

}  // namespace

bool code_dots_are_exact() { return is_exact(Fill::highest) && is_exact(Fill::opposite) && is_exact(Fill::drawn); }

}  // namespace hopfuse::HOPFUSE_ISA_NS
