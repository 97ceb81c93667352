// A document's place in one list, and what its score may depend on beside its places.
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

// One query's lists.
struct Union {
    int32_t lists;
    int64_t documents;      // of the union
    const int64_t* counts;  // of list l, pools[l] at most: counts[l * step]
    int64_t step;
    const int64_t* pools;
    const float* weight;  // (L,)
    const float* option;  // what the method's header says
    float theta;          // gumbel.h; 1 for other methods
};

// How many documents list l has, after its cap.
HOPFUSE_FN int64_t length(const Union& of, int32_t l) {
    const int64_t count = of.counts[l * of.step], pool = of.pools[l];
    return count < pool ? count : pool;
}

// The value of list l, or `missing` where it lacks the document; `at` is the number of entries before it, and goes on.
// For l = 0, 1, ... in turn.
HOPFUSE_FN float value_or(const Entry* entry, int held, int32_t l, float missing, int& at) {
    return at < held && entry[at].list == l ? entry[at++].value : missing;
}

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
