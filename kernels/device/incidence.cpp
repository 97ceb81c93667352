#include "incidence.h"

#include <algorithm>

namespace hopfuse::device {

std::shared_ptr<const DeviceIncidence> device_incidence(Queue& queue, std::span<const int64_t> indptr,
                                                        std::span<const int32_t> indices,
                                                        std::span<const float> weights) {
    queue.device().require(indptr.size_bytes() + indices.size_bytes() + weights.size_bytes(), "the incidence");
    const Queue::Resident resident(queue);
    int64_t longest = 0;
    for (size_t i = 1; i < indptr.size(); ++i) longest = std::max(longest, indptr[i] - indptr[i - 1]);
    const auto [there_indptr, there_indices, there_weights] = queue.upload(indptr, indices, weights);
    return std::make_shared<DeviceIncidence>(DeviceIncidence{static_cast<int64_t>(indptr.size()) - 1, longest,
                                                             there_indptr, there_indices,
                                                             weights.empty() ? Array<float>() : there_weights});
}

}  // namespace hopfuse::device
