// How a call runs on a CPU: on how many threads, and what may stop it. Results do not depend on it.
#pragma once

#include "hopfuse/integers.h"

namespace hopfuse {

// A request to stop a call. Kernels look at it between units of work of at most some tens of milliseconds, return
// Status::stopped if it is raised, and then leave their outputs with undefined contents.
struct StopFlag {
    const int32_t* raised;    // not 0: stop. Any thread may write it during a call, atomically.
    const StopFlag* further;  // another flag that stops the call as well, or null
    void (*poll)(StopFlag*);  // called before each look by every thread of the call, if not null; it may raise the flag
};

struct Execution {
    int32_t threads;           // >= 1
    StopFlag* stop = nullptr;  // or null: the call cannot be stopped
};

}  // namespace hopfuse
