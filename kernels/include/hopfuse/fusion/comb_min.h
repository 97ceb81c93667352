// CombMIN (Fox & Shaw, TREC-2 1993): score = min of c_l over the lists that hold the document, c the calibrated scores.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombMinFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const float*) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union&) {
        float least = entry[0].value;
        HOPFUSE_ROLLED
        for (int e = 1; e < held; ++e) least = entry[e].value < least ? entry[e].value : least;
        return least;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
