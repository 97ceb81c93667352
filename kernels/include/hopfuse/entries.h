// The entries of stored rows, a column and a weight each: in two arrays, or packed in words of 32 bits with a table of the distinct
// weights, which loses nothing. Shared by host and device.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

// A word has the column in its lowest bits and, if weights have codes, the code of the weight in the bits from `code_shift` on.
struct Entries {
    const int32_t* word;
    const float* weight;  // of each entry or, if weights have codes, of each code; or null: all 1
    int32_t column_mask;
    int32_t code_shift;  // 0: weights have no codes
};

// Entries that are not packed; a null `weight`: all 1.
HOPFUSE_FN Entries entries_of(const int32_t* column, const float* weight) {
    return Entries{column, weight, 0x7fffffff, 0};
}

HOPFUSE_FN int32_t column_of(const Entries& entries, int32_t word) { return word & entries.column_mask; }
HOPFUSE_FN int32_t column_at(const Entries& entries, int64_t e) { return column_of(entries, entries.word[e]); }

// The weight of entry e, whose word is known, where there are weights.
HOPFUSE_FN float stored_weight(const Entries& entries, int64_t e, int32_t word) {
    return entries.weight[entries.code_shift == 0 ? e : int64_t(static_cast<uint32_t>(word) >> entries.code_shift)];
}

HOPFUSE_FN float weight_of(const Entries& entries, int64_t e, int32_t word) {
    return entries.weight == nullptr ? 1.0f : stored_weight(entries, e, word);
}

HOPFUSE_FN float weight_at(const Entries& entries, int64_t e) { return weight_of(entries, e, entries.word[e]); }

}  // namespace hopfuse
