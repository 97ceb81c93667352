// Linear fusion: score = sum_l w_l c_l in list order, c the calibrated scores; a list that lacks the
// document adds 0.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct LinearFusion : WeightedSum<LinearFusion> {};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
