// What the PPR kernels read of a graph and of a batch's restarts; see ppr_walk.h.
#pragma once

#include "hopfuse/entries.h"
#include "hopfuse/integers.h"
#include "kernel_type.h"

namespace hopfuse {

// How stored entries count. `edges_untyped`: plain or weighted.
enum EdgeKind { edges_plain, edges_weighted, edges_untyped, edges_typed, edges_per_type };

struct DeviceRows {
    const int64_t* indptr;
    Entries entries;
    const uint8_t* edge_type;  // or null: one type
    const float* eta;          // (T, L) or null: all 1
    const float* scale;        // per_type: (N, T) or, per lane, (N, T, L)
    int32_t num_types;
    int32_t per_lane;
};

// The segments of rows longer than a segment and, if lanes are masked, which of their entries count in a lane.
struct LongRows {
    const int64_t *begin, *end;  // (segments,) entries
    const int64_t* first_of;     // the first segment of each long row, and the end of the last one
    const int32_t* row_of;       // (segments,) the index of its long row
    const uint64_t* allowed;     // (segments, L) a bit per entry; or null: all count
    const int32_t* before;       // (segments, L) how many of the row's entries count before the segment
};

// A set of rows: a bit for each of a tile's 64 rows, and the number of rows of the set before the tile.
struct RowSet {
    const uint64_t* words;
    const int32_t* rank;
};

}  // namespace hopfuse
