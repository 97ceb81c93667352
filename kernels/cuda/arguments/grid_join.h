// Through what the blocks of a launch join their measurements; see grid_join.h.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

constexpr int JOIN_PLACES = 64;      // where the blocks of a launch, of any number, join
constexpr int JOIN_THREADS = 256;    // the most threads of a block that joins
constexpr int MEASURED_COLUMNS = 2;  // values of a lane: a sum and a maximum

// Where blocks join their measurements; 0 before and after a launch.
struct JoinRoom {
    double* columns;    // (JOIN_PLACES, 2, L)
    uint32_t* arrived;  // (1 + JOIN_PLACES,)
};

// The shared memory of a block for joining.
struct JoinShared {
    double values[JOIN_THREADS];
    bool is_last;
};

}  // namespace hopfuse
