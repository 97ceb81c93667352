// CombANZ (Fox & Shaw, TREC-2 1993): score = (sum_l w_l c_l in list order) / h, c the calibrated scores, h the number of
// lists that hold the document.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombAnzFusion : WeightedSum<CombAnzFusion> {
    HOPFUSE_FN float finish(float score, int held, const Union&) { return score / static_cast<float>(held); }

    HOPFUSE_FN bool rises(const Union&) { return false; }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
