// CombMNZ (Fox & Shaw, TREC-2 1993): score = option[h] * sum_l w_l c_l in list order, c the calibrated scores, h the
// number of lists that hold the document; option[h] = h^gamma, gamma = 1 in the paper.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombMnzFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const float*) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        return weighted_sum(entry, held, of.weight) * of.option[held];
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
