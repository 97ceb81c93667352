// A document's entry in one list, and the other inputs of its score.
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

// The parameters of fusion methods; a method's header says which ones it has.
#define HOPFUSE_FUSION_NUMBERS(X) \
    X(temperature)                \
    X(wasserstein)                \
    X(epsilon)                    \
    X(theta)                      \
    X(p)                          \
    X(interference)               \
    X(missing)                    \
    X(rank_constant)              \
    X(log_phi)                    \
    X(one_minus_phi)              \
    X(roots)                      \
    X(steps)
// Arrays, with their sizes for a number of lists.
#define HOPFUSE_FUSION_ARRAYS(X) \
    X(bias, lists)               \
    X(q, lists)                  \
    X(by_holders, lists + 1)

struct FusionOptions {
#define HOPFUSE_FIELD(name) float name;
    HOPFUSE_FUSION_NUMBERS(HOPFUSE_FIELD)
#undef HOPFUSE_FIELD
#define HOPFUSE_FIELD(name, size) const float* name;
    HOPFUSE_FUSION_ARRAYS(HOPFUSE_FIELD)
#undef HOPFUSE_FIELD
};

// By document, then by list.
HOPFUSE_FN bool entry_before(const Entry& a, const Entry& b) {
    return a.id < b.id || (a.id == b.id && a.list < b.list);
}

// One query's lists.
struct Union {
    int32_t lists;
    int64_t documents;      // of the union
    const int64_t* counts;  // counts[l * step] for list l, before the cap pools[l]
    int64_t step;
    const int64_t* pools;
    const float* weight;  // (L,)
    const FusionOptions& option;
    float theta;  // gumbel.h; 1 for other methods
};

// The number of documents of list l, after its cap.
HOPFUSE_FN int64_t length(const Union& of, int32_t l) {
    const int64_t count = of.counts[l * of.step], pool = of.pools[l];
    return count < pool ? count : pool;
}

// The value of list l, or `missing` if it lacks the document. Called for l = 0, 1, ... in turn; `at` counts the entries
// already used.
HOPFUSE_FN float value_or(const Entry* entry, int held, int32_t l, float missing, int& at) {
    return at < held && entry[at].list == l ? entry[at++].value : missing;
}

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
