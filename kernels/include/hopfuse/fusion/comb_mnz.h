// CombMNZ (Fox & Shaw, TREC-2 1993): score = by_holders[h] * sum_l w_l c_l in list order, c the calibrated scores, h the
// number of lists that hold the document; by_holders[h] = h^gamma, gamma = 1 in the paper.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct CombMnzFusion : WeightedSumByHolders<CombMnzFusion> {};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
