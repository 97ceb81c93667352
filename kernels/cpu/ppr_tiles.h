// A pass of few lanes over tiles, for a state larger than the cache of a core. Layout: PprTiles in hopfuse/ppr.h. Included
// once per instruction set.
#pragma once

#include "ppr_row_end.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The sums of a block's units, (units, L), each from +0. Strips hold the entries of a unit in ascending order, and adjacent
// entries are added to different units, so their chains of additions overlap.
template <int L, class Edges>
void sum_units(const PprBlock<L>& block, const PprTiles& tiles, int64_t number, float* sums) {
    const Edges edges(block, tiles);
    const int64_t* const begin = tiles.begin + number * tiles.num_strips;
    std::memset(sums, 0, size_t(tiles.most_units) * L * sizeof(float));
    for (int64_t strip = 0; strip < tiles.num_strips; ++strip) {
        const float* const current = block.current + strip * tiles.strip * L;
        for (int64_t e = begin[strip]; e < begin[strip + 1]; ++e) {
            float* const sum = sums + int64_t{tiles.unit[e]} * L;
            const int32_t source = tiles.source[e];
            F<L>::store(sum, edges(e, current + int64_t{source} * L, source, F<L>::load(sum)));
        }
    }
}

// Rows begin .. end - 1, where begin is a multiple of 8 and the sums of their units start at `sums`.
template <int L>
void take_units(const PprBlock<L>& block, int64_t begin, int64_t end, const float* sums, RowEnd<L>& row_end) {
    constexpr int group = 8;
    const int64_t* const indptr = block.graph.indptr;
    for (int64_t row = begin; row < end; row += group) {
        const int count = end - row < group ? static_cast<int>(end - row) : group;
        float totals[group * L];
        bool is_whole = count == group;  // no row is empty or missing
        for (int i = 0; i < count; ++i) {
            F<L> total = F<L>::zero();
            int64_t left = indptr[row + i + 1] - indptr[row + i];
            is_whole = is_whole && left > 0;
            for (; left > 0; left -= PPR_SEGMENT, sums += L) total = F<L>::add(total, F<L>::load(sums));
            F<L>::store(totals + i * L, total);
        }
        if constexpr (L == 1) {
            if (is_whole && row_end.are_plain(row)) {
                row_end.take_plain(row, totals);
                continue;
            }
        }
        for (int i = 0; i < count; ++i)
            row_end.take(row + i, F<L>::load(totals + i * L), indptr[row + i] == indptr[row + i + 1]);
    }
}

template <int L, class Edges>
void pass_tiles(const PprBlock<L>& block, const PassOptions& options) {
    const PprTiles& tiles = *block.graph.tiles;
    parallel_for(tiles.num_blocks, 1, block.queries.execution, [&](int64_t number, int thread) {
        float* const units = block.partial + thread * tiles.most_units * L;
        sum_units<L, Edges>(block, tiles, number, units);
        RowEnd<L> row_end(block, options);
        take_units<L>(block, tiles.block_row[number], tiles.block_row[number + 1], units, row_end);
        row_end.join_sums(thread);
    });
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
