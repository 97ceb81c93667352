// Hits as operands and results of a device's operations.
#pragma once

#include "../kernels/device/hits.h"
#include "device.h"

// Hits that a call takes.
struct HitOperands {
    Operand<int64_t> ids;
    Operand<float> scores;
    Operand<int64_t> counts;

    // In the body of DeviceCall::run, after Operands::upload().
    native::HitArrays arrays() const { return {ids.dim(0), ids.dim(1), ids, scores, counts}; }
};

inline HitOperands take_hits(Operands& in, nb::handle ids, nb::handle scores, nb::handle counts) {
    return {in.take<int64_t>(ids, 2), in.take<float>(scores, 2), in.take<int64_t>(counts, 1)};
}

inline void add_hits(Results& out, const native::HitArrays& hits) {
    out.add("ids", hits.ids, {hits.batch, hits.k});
    out.add("scores", hits.scores, {hits.batch, hits.k});
    out.add("counts", hits.counts, {hits.batch});
}
