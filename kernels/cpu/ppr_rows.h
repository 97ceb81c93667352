// Rows of equal length, stored side by side. Summed together, their additions overlap and loop ends are predictable.
// Included once per instruction set.
#pragma once

#include "hopfuse/ppr.h"
#include "simd.h"

namespace hopfuse::HOPFUSE_ISA_NS {

// How many rows of equal length are summed together, limited by registers.
template <int L>
constexpr int rows_together = L >= 32  ? 2
                              : L >= 8 ? 4
                                       : 8;

// The number of segments of a row.
HF_INLINE int64_t segment_count(const PprGraph& graph, int64_t row) {
    return (graph.indptr[row + 1] - graph.indptr[row] + PPR_SEGMENT - 1) / PPR_SEGMENT;
}

HF_INLINE bool have_one_length(const int64_t* indptr, int64_t row, int count) {
    const int64_t length = indptr[row + 1] - indptr[row];
    if (length > PPR_SEGMENT || indptr[row + count] - indptr[row] != count * length) return false;
    for (int i = 1; i < count; ++i)
        if (indptr[row + i + 1] - indptr[row + i] != length) return false;
    return true;
}

// How many entries ahead the state is prefetched, if all entries of rows up to `end` have one so far ahead; otherwise 0.
HF_INLINE int64_t entries_ahead(const PprGraph& graph, int64_t end) {
    constexpr int64_t ahead = 24;
    return graph.indptr[end] + ahead <= graph.num_stored ? ahead : 0;
}

}  // namespace hopfuse::HOPFUSE_ISA_NS
