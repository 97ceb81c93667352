// An incidence on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device.h"

namespace hopfuse::device {

// Resident: made once, and read by any queue.
struct DeviceIncidence {
    int64_t rows;
    int64_t longest_row;  // entries
    Array<int64_t> indptr;
    Array<int32_t> indices;  // ascending in a row
    Array<float> weights;    // or null: all 1
};

// Uploads an incidence; `weights` without an address are all 1.
std::shared_ptr<const DeviceIncidence> device_incidence(Queue& queue, std::span<const int64_t> indptr,
                                                        std::span<const int32_t> indices,
                                                        std::span<const float> weights);

}  // namespace hopfuse::device
