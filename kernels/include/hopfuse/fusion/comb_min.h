// CombMIN (Fox & Shaw, TREC-2 1993): score = min of c_l over the lists that hold the document, c the calibrated scores.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombMinFusion : Fold<CombMinFusion> {
    HOPFUSE_FN float start() { return bits_to_float(0x7f800000u); }

    HOPFUSE_FN float add(float score, float term, int32_t, const Union&) { return term < score ? term : score; }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
