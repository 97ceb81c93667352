// Sums of columns of a sparse matrix with few of its passages each, such as the scores of terms (BM25).
#pragma once

#include <cstdint>

#include "hopfuse/status.h"

namespace hopfuse {

// Column t has the entries indptr[t] .. indptr[t + 1] - 1: passages, each once, and their scores, finite and at least 0.
struct TermColumns {
    int64_t num_passages;
    const int64_t* indptr;
    const int32_t* passages;
    const float* scores;
};

// Writes the passages with a sum above 0, each once and in any order, and their sums, float32 in the order of the terms;
// there is room for all entries of the terms or for all passages. A term may occur several times.
Status sum_terms(const TermColumns& columns, const int64_t* terms, int64_t num_terms, int32_t* passages, float* sums,
                 int64_t& count);

}  // namespace hopfuse
