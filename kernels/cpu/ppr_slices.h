// Loops over slices, and a pass of few lanes over them, whose chains of additions run side by side. Layout: PprSlices in hopfuse/ppr.h. Included
// once per instruction set.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ppr_edges.h"
#include "ppr_row_end.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// The length of the shortest unit of a slice, which starts at `indptr`.
HF_INLINE int64_t shortest_unit(const int64_t* indptr) { return indptr[PPR_SLICE] - indptr[PPR_SLICE - 1]; }

// Calls take(i, entry) for the entries of units beyond the length of the shortest, which are stored from e on. Only slices with
// units of different lengths have some, which are rare.
template <class Take>
HF_INLINE void rest_of_units(const int64_t* indptr, int64_t e, const Take& take) {
    const int64_t shortest = shortest_unit(indptr), end = indptr[PPR_SLICE];
    for (int i = 0; e < end; ++i)
        for (const int64_t stop = e + indptr[i + 1] - indptr[i] - shortest; e < stop; ++e) take(i, e);
}

// The sources of a slice's entries, in 16 or 32 bits, where it does not pay to have a loop for each.
struct AnySource {
    const uint16_t* narrow;
    const int32_t* wide;
    HF_MEMBER int32_t operator[](int64_t e) const { return narrow == nullptr ? wide[e] : narrow[e]; }
};

// The sums of a slice's units, (PPR_SLICE, L), each from +0 in the order of its entries.
template <int L, class Edges, class Source>
HF_INLINE void slice_sums(const float* current, Source source, const int64_t* indptr, const Edges& edges, float* sums) {
    F<L> acc[PPR_SLICE];
    HF_UNROLL for (int i = 0; i < PPR_SLICE; ++i) acc[i] = F<L>::zero();
    const int64_t shortest = shortest_unit(indptr);
    int64_t e = indptr[0];
    const auto add = [&](int64_t entry, F<L> sum) {
        const int32_t u = source[entry];
        return edges(entry, current + int64_t{u} * L, u, sum);
    };
    for (int64_t j = 0; j < shortest; ++j, e += PPR_SLICE)
        HF_UNROLL for (int i = 0; i < PPR_SLICE; ++i) acc[i] = add(e + i, acc[i]);
    HF_UNROLL for (int i = 0; i < PPR_SLICE; ++i) F<L>::store(sums + i * L, acc[i]);
    rest_of_units(indptr, e,
                  [&](int i, int64_t entry) { F<L>::store(sums + i * L, add(entry, F<L>::load(sums + i * L))); });
}

// The first slice of part `part` of `parts` parts with equal work.
inline int64_t first_slice(const PprSlices& slices, int64_t part, int64_t parts) {
    constexpr int64_t unit_work = 4;  // in entries
    const int64_t count = slices.num_units / PPR_SLICE;
    const auto work = [&](int64_t slice) { return slices.indptr[slice * PPR_SLICE] + slice * PPR_SLICE * unit_work; };
    const int64_t wanted = work(count) / parts * part;
    if (part == parts) return count;
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (work(middle) < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Calls body(begin, end, thread) for parts of the slices.
template <class Body>
void divide_slices(const PprGraph& graph, const Execution& execution, const Body& body) {
    constexpr int64_t most_work = 1 << 21;  // entries of a part, because a call may be stopped between parts
    const int64_t threads = execution.threads, equal = threads == 1 ? 1 : 8 * threads;
    const int64_t parts = std::max(equal, graph.num_stored / most_work);
    parallel_for(parts, 1, execution, [&](int64_t part, int thread) {
        body(first_slice(*graph.slices, part, parts), first_slice(*graph.slices, part + 1, parts), thread);
    });
}

// Calls body(begin, end, thread) for parts of the rows whose segments are units.
template <class Body>
void divide_long_rows(const PprSlices& slices, const Execution& all, const Body& body) {
    const Execution worth =
        on_threads(all, threads_worth(slices.long_rows + slices.segment_units, 1 << 14, all.threads));
    const int64_t chunk = 1 + slices.long_rows / (8 * int64_t{worth.threads});
    parallel_for((slices.long_rows + chunk - 1) / chunk, 1, worth, [&](int64_t part, int thread) {
        body(part * chunk, std::min((part + 1) * chunk, slices.long_rows), thread);
    });
}

// Slices begin .. end - 1: sums of segments go to `partial`, those of rows to `row_end`.
template <int L, class Edges, class Source>
void take_slices(const PprBlock<L>& shared, Source source, int64_t begin, int64_t end, float* partial,
                 RowEnd<L>& row_end) {
    const PprSlices slices = *shared.graph.slices;
    const Edges edges(shared, slices);
    const float* const current = shared.current;
    const int64_t rows = shared.graph.num_nodes, segments = slices.segment_units;
    for (int64_t slice = begin; slice < end; ++slice) {
        const int64_t unit = slice * PPR_SLICE;
        const int64_t* const indptr = slices.indptr + unit;
        alignas(64) float sums[PPR_SLICE * L];
        slice_sums<L>(current, source, indptr, edges, sums);
        if (unit < segments) {
            HF_UNROLL for (int i = 0; i < PPR_SLICE; ++i)
                F<L>::store(partial + int64_t{slices.segment[unit + i]} * L, F<L>::load(sums + i * L));
            continue;
        }
        const int64_t row = slices.long_rows + unit - segments;
        const bool is_whole = indptr[PPR_SLICE] > indptr[PPR_SLICE - 1];  // no row is empty or missing
        if (is_whole && row_end.are_plain(row)) {
            row_end.take_plain(row, sums);
            continue;
        }
        for (int i = 0; i < PPR_SLICE && row + i < rows; ++i)
            row_end.take(row + i, F<L>::add(F<L>::zero(), F<L>::load(sums + i * L)), indptr[i] == indptr[i + 1]);
    }
}

// The sums of long rows, from those of their segments.
template <int L>
void take_long_rows(const PprBlock<L>& block, const PassOptions& options, const float* partial) {
    const PprSlices& slices = *block.graph.slices;
    divide_long_rows(slices, block.queries.execution, [&](int64_t begin, int64_t end, int thread) {
        RowEnd<L> row_end(block, options);
        for (int64_t row = begin; row < end; ++row) {
            const int32_t first = slices.row_segments[row], last = slices.row_segments[row + 1];
            F<L> total = F<L>::zero();
            for (int64_t segment = first; segment < last; ++segment)
                total = F<L>::add(total, F<L>::load(partial + segment * L));
            row_end.take(row, total, first == last);
        }
        row_end.join_sums(thread);
    });
}

template <int L, class Edges, class Source>
void pass_slices(const PprBlock<L>& block, Source source, const PassOptions& options) {
    divide_slices(block.graph, block.queries.execution, [&](int64_t begin, int64_t end, int thread) {
        RowEnd<L> row_end(block, options);
        take_slices<L, Edges>(block, source, begin, end, block.partial, row_end);
        row_end.join_sums(thread);
    });
    take_long_rows<L>(block, options, block.partial);
}

template <int L, class Edges>
void pass_slices(const PprBlock<L>& block, const PassOptions& options) {
    const PprSlices& slices = *block.graph.slices;
    if constexpr (std::is_same_v<Edges, TypedEdges<L>> || std::is_same_v<Edges, PerTypeEdges<L>>) {
        pass_slices<L, Edges>(block, AnySource{slices.narrow, slices.wide}, options);
    } else {
        if (slices.narrow != nullptr) pass_slices<L, Edges>(block, slices.narrow, options);
        else pass_slices<L, Edges>(block, slices.wide, options);
    }
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
