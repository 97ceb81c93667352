// Projection of scores onto the rows of an incidence, on a device. Contract: hopfuse/project.h.
#pragma once

#include "arguments/project_f32.h"
#include "incidence.h"
#include "selection.h"

namespace hopfuse::device {

// What is projected.
struct Projection {
    std::shared_ptr<const DeviceIncidence> incidence;
    Array<float> scores;  // (batch, columns)
    int64_t batch, columns;
    const float* scale;  // (rows,) on the host, or null
};

struct Projected {
    Array<float> scores;    // (batch, rows)
    Array<int32_t> status;  // (batch,)
};

Projected project(Queue& queue, const Projection& given);

// The k best rows of each query.
TopkHits project_topk(Queue& queue, const Projection& given, int64_t k);

}  // namespace hopfuse::device
