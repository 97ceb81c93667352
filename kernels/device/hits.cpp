#include "hits.h"

#include <limits>
#include <vector>

namespace hopfuse::device {

HitArrays empty_hits(Queue& queue, int64_t batch, int64_t k) {
    auto [ids, scores, counts] = queue.arrays<int64_t, float, int64_t>(batch * k, batch * k, batch);
    return {batch, k, ids, scores, counts};
}

CheckedHits empty_checked_hits(Queue& queue, int64_t batch, int64_t k) {
    auto [ids, scores, counts, status] =
        queue.arrays<int64_t, float, int64_t, int32_t>(batch * k, batch * k, batch, batch);
    return {{batch, k, ids, scores, counts}, status};
}

HitArrays no_hits(Queue& queue, int64_t batch, int64_t k) {
    const size_t size = static_cast<size_t>(batch * k);
    const std::vector<int64_t> none(size, -1), zero(static_cast<size_t>(batch), 0);
    const std::vector<float> last(size, -std::numeric_limits<float>::infinity());
    auto [ids, scores, counts] = queue.upload(std::span(none), std::span(last), std::span(zero));
    return {batch, k, ids, scores, counts};
}

}  // namespace hopfuse::device
