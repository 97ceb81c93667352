// The entries of a graph in slices for the kernels of ppr_sliced_f32.cu, which walk for few queries.
#pragma once

#include <span>
#include <vector>

#include "arguments/ppr_sliced_f32.h"
#include "device.h"
#include "packing.h"

namespace hopfuse::device {

// In host memory. Made in time linear in the entries: rows are sorted by length, by counting, in windows of SLICE_WINDOW, and keep
// their order among equals, so that the rows of a slice are close in the state, factors and degrees, which stay in their order.
struct HostSlices {
    std::vector<Slice> slices;  // those of rows longer than PPR_SEGMENT first
    std::vector<SliceOfLong> of_long;
    std::vector<uint32_t> rows;
    std::vector<int32_t> word;  // as the rows have them
    std::vector<float> weight;  // empty if entries have none of their own

    HostSlices(const HostRows& given, int64_t num_nodes);
    size_t bytes() const;
};

// On a device.
struct DeviceSlices {
    Array<Slice> slices;
    Array<SliceOfLong> of_long;
    Array<uint32_t> rows;
    EntryArrays stored;

    SliceTable table() const;
};

// Slices of `rows`.
DeviceSlices upload_slices(Queue& queue, const HostSlices& slices, const EntryArrays& rows);

}  // namespace hopfuse::device
