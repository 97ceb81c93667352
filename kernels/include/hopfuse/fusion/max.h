// Maximum fusion, the union rule of the Dice-Soerensen hybrid: score = max over the lists that hold the
// document of (c_l + option[l]), c the calibrated scores, option[l] the bias of list l.
#pragma once

#include "hopfuse/fusion/entry.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct MaxFusion {
    template <class Team>
    HOPFUSE_FN void list_values(const Team&, float*, int64_t, int32_t, const float*) {}

    HOPFUSE_FN float document_score(const Entry* entry, int held, const Union& of) {
        float best = entry[0].value + of.option[entry[0].list];
        HOPFUSE_ROLLED
        for (int e = 1; e < held; ++e) {
            const float biased = entry[e].value + of.option[entry[e].list];
            best = best > biased ? best : biased;
        }
        return best;
    }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
