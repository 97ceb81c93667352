// Sørensen-Dice scores on a device, where labels are resident. The contract is hopfuse/dice.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device.h"
#include "hopfuse/dice.h"

namespace hopfuse::device {

// Sets of labels on a device: row i has the elements members[indptr[i]] .. members[indptr[i + 1] - 1].
struct DeviceLabels {
    Array<int64_t> indptr;
    Array<int32_t> members;
};

// Copies labels from the host under Queue::Resident; NoRoom if the device lacks the memory.
std::shared_ptr<const DeviceLabels> upload_labels(Queue& queue, std::span<const int64_t> indptr,
                                                  std::span<const int32_t> members);

// Scores of all candidates, (Z,). The arrays of the call are on the host, but its labels are `labels`.
Array<float> dice(Queue& queue, const std::shared_ptr<const DeviceLabels>& labels, const DiceArgs& call);

}  // namespace hopfuse::device
