// One float32 pass over the graph for a block of lanes. Included once per instruction set.
#pragma once

#include "ppr_block.h"
#include "ppr_edges.h"
#include "ppr_row_end.h"
#include "ppr_rows.h"
#include "ppr_slices.h"
#include "ppr_tiles.h"
#include "threads.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The state row of node u, or null where it is known to be 0, since entries left out of a sum add exactly 0. The first two
// passes read little of the state: pass 1 the restart rows, in their compact table, pass 2 their neighbours.
template <int L>
HF_INLINE const float* state_row(const BlockRows<L>& block, int64_t u) {
    if (block.pass > 2 || block.all_restart) return block.current + u * L;
    if (block.pass == 2) return block.is_near(u) ? block.current + u * L : nullptr;
    return block.has_restart(u) ? block.restart32 + block.restart_index(u) * L : nullptr;
}

// A row longer than a segment with masked lanes. Segments are cut by the number of entries that a lane may use, so that
// entries of excluded nodes (which add exactly 0) never change a sum.
template <int L, class Edges>
F<L> masked_row_sum(const BlockRows<L>& block, const Edges& edges, int64_t begin, int64_t end, bool& near) {
    const F<L> full = F<L>::all(float(PPR_SEGMENT));
    F<L> total = F<L>::zero(), acc = F<L>::zero(), count = F<L>::zero();
    for (int64_t e = begin; e < end; ++e) {
        const int32_t u = block.graph.indices[e];
        const float* y = state_row<L>(block, u);
        if (y != nullptr) acc = edges(e, y, u, acc), near = true;
        count = F<L>::add(count, F<L>::load(block.mask32 + int64_t{u} * L));
        uint32_t cut = F<L>::ge(count, full);
        if (cut == 0) continue;
        float totals[L], accs[L], counts[L];
        F<L>::store(totals, total), F<L>::store(accs, acc), F<L>::store(counts, count);
        for (; cut != 0; cut &= cut - 1) {
            const int lane = __builtin_ctz(cut);
            totals[lane] = totals[lane] + accs[lane];
            accs[lane] = counts[lane] = 0.0f;
        }
        total = F<L>::load(totals), acc = F<L>::load(accs), count = F<L>::load(counts);
    }
    return F<L>::add(total, acc);
}

// The sum over entries begin .. end - 1 of a row in the first two passes, and whether any entry was read. Entries with a
// nonzero state are found without a branch per entry, which would be unpredictable.
template <int L, class Edges>
F<L> sparse_row_sum(const BlockRows<L>& block, const Edges& edges, int64_t begin, int64_t end, bool& near) {
    const int32_t* const indices = block.graph.indices;
    const uint64_t* const marks = block.pass == 1 ? block.words : block.near;
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        int64_t marked[PPR_SEGMENT];
        int count = 0;
        for (int64_t e = segment; e < stop; ++e) {
            marked[count] = e;
            count += static_cast<int>((marks[indices[e] >> 6] >> (indices[e] & 63)) & 1u);
        }
        F<L> acc = F<L>::zero();
        for (int i = 0; i < count; ++i) {
            const int32_t u = indices[marked[i]];
            acc = edges(marked[i], state_row<L>(block, u), u, acc);
        }
        near = near || count > 0;
        total = F<L>::add(total, acc);
    }
    return total;
}

// The sum over entries begin .. end - 1 of a row. `later` is `indices` advanced by some entries. Their state is prefetched,
// also beyond the end of the row, which is unpredictable.
template <int L, class Edges>
HF_INLINE F<L> dense_row_sum(const float* current, const int32_t* indices, const int32_t* later, const Edges& edges,
                             int64_t begin, int64_t end) {
    F<L> total = F<L>::zero();
    for (int64_t segment = begin; segment < end; segment += PPR_SEGMENT) {
        const int64_t stop = segment + PPR_SEGMENT < end ? segment + PPR_SEGMENT : end;
        F<L> acc = F<L>::zero();
        for (int64_t e = segment; e < stop; ++e) {
            prefetch_row<L>(current, later[e]);
            const int32_t u = indices[e];
            acc = edges(e, current + int64_t{u} * L, u, acc);
        }
        total = F<L>::add(total, acc);
    }
    return total;
}

// The sums of `together` rows of `length` entries each, at most a segment. Their chains of additions are independent, and
// the loop ends are predictable because rows of equal length are stored side by side.
template <int L, int together, class Edges>
HF_INLINE void dense_rows_sum(const float* current, const int32_t* indices, const int32_t* later, const Edges& edges,
                              int64_t begin, int64_t length, F<L>* sums) {
    F<L> acc[together];
    HF_UNROLL for (int i = 0; i < together; ++i) acc[i] = F<L>::zero();
    for (int64_t j = 0; j < length; ++j) {
        HF_UNROLL for (int i = 0; i < together; ++i) {
            const int64_t e = begin + i * length + j;
            if constexpr (L >= 16) prefetch_row<L>(current, later[e]);
            const int32_t u = indices[e];
            acc[i] = edges(e, current + int64_t{u} * L, u, acc[i]);
        }
    }
    HF_UNROLL for (int i = 0; i < together; ++i) sums[i] = F<L>::add(F<L>::zero(), acc[i]);  // as one segment
}

// Which entries of a row a pass reads: those of nonzero rows, as one of the first two passes does, or all.
enum class Rows { sparse, dense };

// A chunk of whole tiles, with rows in stored order; `end_of` takes their sums. The first pass finds the rows that are
// nonzero after it, unless they are known before.
template <int L, class Edges, Rows rows>
void pass_rows(const BlockRows<L>& shared, int64_t begin, int64_t end, RowEnd<L>& end_of) {
    const BlockRows<L> block = shared;
    const Edges edges(block, block.graph);
    const int64_t* indptr = block.graph.indptr;
    const int32_t* indices = block.graph.indices;
    const bool finds_near = rows == Rows::sparse && block.pass == 1 && !block.near_is_known();
    if (finds_near) std::memset(block.near + begin / 64, 0, size_t((end - begin + 63) / 64) * sizeof(uint64_t));
    constexpr int together = L >= 32 ? 1 : rows_together<L>;  // a row of 32 lanes alone has enough independent sums
    const int32_t* later = indices + entries_ahead(block.graph, end);
    for (int64_t row = begin; row < end; ++row) {
        const int64_t first = indptr[row], last = indptr[row + 1];
        if constexpr (L >= 16) end_of.look_ahead(row + 8 < end ? row + 8 : row);
        if (rows == Rows::sparse && block.is_unreached(row)) {
            const int64_t count = (row & 63) == 0 && row + 64 <= end && block.are_unreached(row) ? 64 : 1;
            end_of.skip(row, count);
            row += count - 1;
            continue;
        }
        if constexpr (rows == Rows::dense && together > 1) {
            if (row + together <= end && have_one_length(indptr, row, together)) {
                F<L> sums[together];
                dense_rows_sum<L, together>(block.current, indices, later, edges, first, last - first, sums);
                for (int i = 0; i < together; ++i) end_of.take(row + i, sums[i], first == last);
                row += together - 1;
                continue;
            }
        }
        F<L> s;
        bool near = block.has_restart(row);
        if (block.mask32 != nullptr && last - first > PPR_SEGMENT) {
            s = masked_row_sum<L, Edges>(block, edges, first, last, near);
        } else if (rows == Rows::sparse) {
            s = sparse_row_sum<L, Edges>(block, edges, first, last, near);
        } else {
            s = dense_row_sum<L, Edges>(block.current, indices, later, edges, first, last);
        }
        if (finds_near && near) block.near[row >> 6] |= uint64_t{1} << (row & 63);
        end_of.take(row, s, first == last);
    }
}

template <int L, class Edges, Rows rows>
void pass_chunks(const PprBlock<L>& block, const PassOptions& options) {
    constexpr int64_t many = 8 * PPR_TILE;
    const int64_t rows_of_all = block.graph.num_nodes;
    parallel_for((rows_of_all + many - 1) / many, 1, block.queries.execution, [&](int64_t part, int thread) {
        RowEnd<L> end_of(block, options);
        const int64_t end = (part + 1) * many < rows_of_all ? (part + 1) * many : rows_of_all;
        pass_rows<L, Edges, rows>(block, part * many, end, end_of);
        end_of.join_sums(thread);
    });
}

// A pass over all entries, in the layout that the graph has for so few lanes, or by rows.
template <int L, class Edges>
void pass_all(const PprBlock<L>& block, const PassOptions& options) {
    const bool is_masked = block.mask32 != nullptr;
    if constexpr (L <= PPR_FEW_LANES) {
        if (block.graph.slices != nullptr && !is_masked) return pass_slices<L, Edges>(block, options);
    }
    if constexpr (L <= PPR_TILE_LANES) {
        if (block.graph.tiles != nullptr && !is_masked) return pass_tiles<L, Edges>(block, options);
    }
    pass_chunks<L, Edges, Rows::dense>(block, options);
}

template <int L>
void run_pass(const PprBlock<L>& block, const PassOptions& options) {
    const bool is_early = block.pass == 1 || (block.pass == 2 && !block.reaches_many);
    const bool is_sparse = is_early && !block.all_restart, per_type = block.queries.per_type;
    if (per_type && block.per_lane)
        return is_sparse ? pass_chunks<L, MaskedTypeEdges<L>, Rows::sparse>(block, options)
                         : pass_chunks<L, MaskedTypeEdges<L>, Rows::dense>(block, options);
    if (per_type)
        return is_sparse ? pass_chunks<L, PerTypeEdges<L>, Rows::sparse>(block, options)
                         : pass_all<L, PerTypeEdges<L>>(block, options);
    if (is_sparse) return pass_chunks<L, TypedEdges<L>, Rows::sparse>(block, options);
    if (block.eta32 != nullptr) return pass_all<L, TypedEdges<L>>(block, options);
    if (block.graph.weight != nullptr) return pass_all<L, WeightedEdges<L>>(block, options);
    pass_all<L, PlainEdges<L>>(block, options);
}

// One pass. Returns what it measures: the L1 residual and the largest |z - y|.
template <int L>
LaneSums<L> ppr_pass(const PprBlock<L>& block, const PassOptions& options) {
    const int threads = block.queries.execution.threads;
    for (int thread = 0; thread < threads; ++thread) block.sums[thread] = LaneSums<L>();
    run_pass<L>(block, options);
    return joined(block.sums, threads);
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
