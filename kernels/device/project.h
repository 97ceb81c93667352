// Projection of scores onto the rows of an incidence, on a device. Contract: hopfuse/project.h.
#pragma once

#include "arguments/project_f32.h"
#include "device.h"
#include "selection.h"

namespace hopfuse::device {

// An incidence on a device. Resident: made once, and read by any queue.
class DeviceIncidence {
public:
    // Host arrays: indptr (rows + 1,), indices and weights of its entries; no weights are weights of 1.
    DeviceIncidence(Queue& queue, std::span<const int64_t> indptr, std::span<const int32_t> indices,
                    std::optional<std::span<const float>> weights);

    int64_t rows() const { return static_cast<int64_t>(indptr_.size()) - 1; }
    int64_t longest_row() const { return longest_row_; }  // entries
    const Array<int64_t>& indptr() const { return indptr_; }
    const Array<int32_t>& indices() const { return indices_; }
    const Array<float>& weights() const { return weights_; }  // or null

private:
    Array<int64_t> indptr_;
    Array<int32_t> indices_;
    Array<float> weights_;
    int64_t longest_row_ = 0;
};

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
