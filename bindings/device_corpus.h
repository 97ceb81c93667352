// A corpus on a device, as Python holds it: hopfuse._native.DeviceCorpus; and filters of its rows.
#pragma once

#include <memory>

#include "../kernels/device/corpus.h"
#include "device.h"

struct Corpus {
    std::shared_ptr<const native::DeviceCorpus> there;
};

// A filter of rows, which stays on the host until the launcher reads it: a mask, or id lists, or None for both.
inline native::RowFilter take_filter(Operands& in, nb::handle mask, nb::handle indptr, nb::handle ids, bool shared) {
    native::RowFilter filter;
    filter.shared = shared;
    if (!mask.is_none()) filter.mask = in.host<uint8_t>(mask).data();
    if (!indptr.is_none()) {
        filter.indptr = in.host<int64_t>(indptr, 1);
        filter.ids = in.host<int64_t>(ids, 1).data();
    }
    return filter;
}

// The vectors of queries, (B, dim) of the corpus.
inline Operand<float> take_queries(Operands& in, nb::handle queries, const Corpus& corpus) {
    const auto given = in.take<float>(queries, 2);
    if (given.dim(1) != corpus.there->dim()) throw nb::type_error("queries have as many dimensions as the corpus");
    return given;
}
