// CombMED (Fox & Shaw, TREC-2 1993): score = the median of c_l over the lists that hold the document, c the calibrated
// scores; of an even number, half the sum of the middle two.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombMedFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const FusionOptions&) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union&) {
        const float upper = smallest(entry, held, held / 2);
        if (held % 2 == 1) return upper;
        return 0.5f * smallest(entry, held, held / 2 - 1) + 0.5f * upper;
    }

private:
    // The value with `before` others before it in ascending order, by counting, without further memory.
    HOPFUSE_FN float smallest(const Entry* entry, int held, int before) {
        HOPFUSE_ROLLED
        for (int e = 0; e < held; ++e) {
            int below = 0, equal = 0;
            HOPFUSE_ROLLED
            for (int other = 0; other < held; ++other) {
                below += entry[other].value < entry[e].value;
                equal += entry[other].value == entry[e].value;
            }
            if (below <= before && before < below + equal) return entry[e].value;
        }
        return entry[0].value;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
