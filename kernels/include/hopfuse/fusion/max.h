// Maximum fusion, the union rule of the Dice-Soerensen hybrid: score = max over the lists that hold the
// document of (c_l + bias[l]), c the calibrated scores.
#pragma once

#include "hopfuse/fusion/fold.h"
#include "hopfuse/scalar.h"

namespace hopfuse {
inline namespace HOPFUSE_SHARED {

struct MaxFusion : Fold<MaxFusion> {
    HOPFUSE_FN float start() { return bits_to_float(0xff800000u); }

    HOPFUSE_FN float term(float value, int32_t list, const Union& of) { return value + of.option.bias[list]; }

    HOPFUSE_FN float add(float score, float term, int32_t, const Union&) { return score > term ? score : term; }

    HOPFUSE_FN float least_term() { return start(); }

    HOPFUSE_FN bool rises(const Union&) { return true; }
};

}  // namespace HOPFUSE_SHARED
}  // namespace hopfuse
