// Entries of weighted graphs in words of 32 bits, if their weights have few values: a column and a code of the weight. What a pass reads
// of an entry is 4 bytes then, not 8.
#pragma once

#include <cstdint>
#include <vector>

#include "array.h"
#include "hopfuse/entries.h"
#include "planted.h"

namespace hopfuse::device {

struct HostRows;

// The bits of a column, and how many codes the other bits of a word have, at most `most`.
int32_t column_bits(int64_t num_nodes);
int64_t code_count(int64_t num_nodes, int64_t most);

// Rows, packed if they can be. Codes are given by the frequency of weights, the most frequent first, so that most entries share a
// cache line of the table.
struct PackedRows {
    std::vector<int32_t> word;   // empty: not packed, because there are no weights or too many values
    std::vector<float> of_code;  // the distinct weights
    int32_t code_shift = 0;

    PackedRows(const HostRows& rows, int64_t num_nodes, int64_t most);
    // The rows as they are stored on a device: words for columns, and the weights of codes for those of entries.
    HostRows stored(const HostRows& rows) const;
};

// Entries on a device: two arrays, or words and the table of their codes.
struct EntryArrays {
    Array<int32_t> word;
    Array<float> weight;     // of entries, or of codes
    int32_t code_shift = 0;  // the bits of a column in a word; 0: weights have no codes

    Entries entries() const {
        if (code_shift == 0) return entries_of(word, weight);
        const int32_t bits = HOPFUSE_PLANT(69, code_shift, code_shift - 1);
        return {word, weight, static_cast<int32_t>((uint32_t{1} << bits) - 1), code_shift};
    }
};

}  // namespace hopfuse::device
