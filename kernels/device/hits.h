// Lists of documents on a device.
#pragma once

#include <cstdint>

#include "device.h"

namespace hopfuse::device {

// The hits of a batch, in rank order.
struct HitArrays {
    int64_t batch = 0, k = 0;
    Array<int64_t> ids;     // (B, k) -1 after counts
    Array<float> scores;    // (B, k) -inf after counts
    Array<int64_t> counts;  // (B,)
};

// Hits with the status of each query (hopfuse/query_status.h).
struct CheckedHits {
    HitArrays hits;
    Array<int32_t> status;  // (B,)
};

// Uninitialised hits, in one allocation, so that they are read in one copy.
HitArrays empty_hits(Queue& queue, int64_t batch, int64_t k);
CheckedHits empty_checked_hits(Queue& queue, int64_t batch, int64_t k);
// Empty lists for a batch.
HitArrays no_hits(Queue& queue, int64_t batch, int64_t k);

}  // namespace hopfuse::device
