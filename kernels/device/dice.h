// Sørensen-Dice scores on a device, where labels are resident. The contract is hopfuse/dice.h. For the binding alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device.h"
#include "hopfuse/dice.h"
#include "uploads.h"

namespace hopfuse::device {

inline constexpr KernelOf<DiceKernel> dice_f32{{"dice_f32", "dice_f32"}};
inline constexpr int DICE_THREADS = 128;

// Sets of labels on a device: row i has the elements members[indptr[i]] .. members[indptr[i + 1] - 1].
struct DeviceLabels {
    Array<int64_t> indptr;
    Array<int32_t> members;
};

// Copies labels from the host under Queue::Resident; NoRoom if the device lacks the memory.
inline std::shared_ptr<const DeviceLabels> upload_labels(Queue& queue, std::span<const int64_t> indptr,
                                                         std::span<const int32_t> members) {
    queue.device().require(indptr.size_bytes() + members.size_bytes(), "the label sets");
    const Queue::Resident resident(queue);
    auto [there, elements] = queue.upload(indptr, members);
    return std::make_shared<const DeviceLabels>(DeviceLabels{there, elements});
}

// Scores of all candidates, (Z,). The arrays of the call are on the host, but its labels are `labels`.
inline Array<float> dice(Queue& queue, const std::shared_ptr<const DeviceLabels>& labels, const DiceArgs& call) {
    const int64_t count = call.indptr[call.batch];
    const Array<float> scores = queue.empty<float>(static_cast<size_t>(count));
    if (count == 0) return scores;
    queue.keep(labels);
    const size_t queries = static_cast<size_t>(call.batch) + 1;
    DiceSets sets = call.queries;
    const int64_t* indptr = call.indptr;
    const int32_t* candidates = call.candidates;
    Uploads uploads;
    uploads.add(sets.units, static_cast<size_t>(sets.indptr[call.batch]));
    uploads.add(sets.indptr, queries);
    uploads.add(indptr, queries);
    uploads.add(candidates, static_cast<size_t>(count * call.parts));
    uploads.copy(queue);
    queue.launch(dice_f32, {blocks(count, DICE_THREADS), DICE_THREADS}, labels->indptr, labels->members, sets.indptr,
                 sets.units, call.batch, indptr, candidates, call.parts, count, scores);
    return scores;
}

}  // namespace hopfuse::device
