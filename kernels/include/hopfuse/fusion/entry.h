// A document's place in one list.
#pragma once

#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct Entry {
    int64_t id;
    int32_t list;
    float value;  // of the method's list_values
};

// By document, then by list.
HOPFUSE_FN bool entry_before(const Entry& a, const Entry& b) {
    return a.id < b.id || (a.id == b.id && a.list < b.list);
}

// sum_l w_l value_l in list order; a list that lacks the document adds 0.
HOPFUSE_FN float weighted_sum(const Entry* entry, int held, const float* weight) {
    float score = 0.0f;
    HOPFUSE_ROLLED
    for (int e = 0; e < held; ++e) score = fmaf(weight[entry[e].list], entry[e].value, score);
    return score;
}

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
