// Through what the blocks of a launch join their measurements; see grid_join.h.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

constexpr int JOIN_GROUP = 64;       // blocks, or groups, that one block joins
constexpr int JOIN_THREADS = 256;    // the most threads of a block that joins
constexpr int MEASURED_COLUMNS = 2;  // values of a lane: a sum and a maximum

// Where blocks store their measurements.
struct JoinRoom {
    double* columns;    // (blocks + groups, 2, L)
    uint32_t* arrived;  // (groups + 1,), 0 before and after a launch
};

// The shared memory of a block for joining.
struct JoinShared {
    double values[JOIN_THREADS];
    bool is_last;
};

}  // namespace hopfuse
