// Condorcet fusion (Montague & Aslam, CIKM 2002): a document beats another if the weight of the lists that rank it higher
// exceeds that of the lists that rank it lower; if the weights are equal, they tie. A list ranks the documents that it holds
// above those that it lacks, and does not rank two that it lacks. score = the number of documents of the union that it beats
// + 1/2 of those that it ties with (Copeland): exact below 2^23 documents.
//
// The score depends on all other documents, so it is computed separately: cpu/majority.h and cuda/fuse_f32.cu store it in
// the document's first entry.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

// The sign of sum_l w_l v_l in list order, with v = 1 if list l ranks document a above b, -1 if below, 0 if it ranks neither.
// In float64, where sums of float32 weights are exact unless their magnitudes differ by 2^20, so equal votes tie.
HOPFUSE_FN int majority(const Entry* a, int held_a, const Entry* b, int held_b, const float* weight) {
    double sum = 0.0;
    int i = 0, j = 0;
    HOPFUSE_ROLLED
    while (i < held_a || j < held_b) {
        const bool in_a = i < held_a && (j == held_b || a[i].list <= b[j].list);
        const bool in_b = j < held_b && (i == held_a || b[j].list <= a[i].list);
        const double w = static_cast<double>(weight[in_a ? a[i].list : b[j].list]);
        sum = in_a && (!in_b || a[i].value < b[j].value) ? sum + w : sum - w;
        i += in_a;
        j += in_b;
    }
    return (sum > 0.0) - (sum < 0.0);
}

struct CondorcetFusion : ByPosition {
    template <class Team>
    HOPFUSE_FN void list_values(const Team& team, float* value, int64_t n, int32_t, const FusionOptions&) {
        team.each(n, [=](int64_t i) { value[i] = static_cast<float>(i); });
    }

    HOPFUSE_FN float document_score(const Entry* entry, int, const Union&) { return entry->value; }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
