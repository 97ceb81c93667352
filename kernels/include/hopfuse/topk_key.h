// A hit as one unsigned number, larger for better ranks: comparing keys is the total order of ranks_before(), so the result of
// a selection does not depend on the order of the rows.
//
//   bits 63 .. 32   the float32 score as an unsigned number in the same order; -0 counts as +0
//   bits 31 .. 1    2^31 - 1 - row: among equal scores the lower row has the larger key. Rows are below 2^31
//   bit 0           1 if the score is -0, so that its bits can be restored
//
// 0 means no hit; it ranks below every finite score.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {

HOPFUSE_FN uint64_t make_topk_key(float score, int64_t row) {
    const uint32_t bits = float_to_bits(score), sign = 0x80000000u;
    const uint32_t is_minus_zero = bits == sign ? 1u : 0u;
    const uint32_t rank = (bits & sign) != 0 && is_minus_zero == 0 ? ~bits : bits | sign;
    const uint32_t place = ((0x7fffffffu - static_cast<uint32_t>(row)) << 1) | is_minus_zero;
    return (static_cast<uint64_t>(rank) << 32) | place;
}

HOPFUSE_FN float topk_key_score(uint64_t key) {
    const uint32_t rank = static_cast<uint32_t>(key >> 32), sign = 0x80000000u;
    if ((key & 1u) != 0) return bits_to_float(sign);
    return bits_to_float((rank & sign) != 0 ? rank & ~sign : ~rank);
}

HOPFUSE_FN int64_t topk_key_row(uint64_t key) {
    return static_cast<int64_t>(0x7fffffffu - (static_cast<uint32_t>(key) >> 1));
}

}  // namespace hopfuse
