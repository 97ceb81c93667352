// An incidence on a device.
#pragma once

#include <cstdint>

#include "array.h"

namespace hopfuse::device {

struct DeviceIncidence {
    int64_t rows;
    int64_t longest_row;  // entries
    Array<int64_t> indptr;
    Array<int32_t> indices;  // ascending in a row
    Array<float> weights;    // or null: all 1
};

}  // namespace hopfuse::device
