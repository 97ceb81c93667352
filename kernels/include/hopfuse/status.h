// The result of every kernel. Kernels never throw; the bindings convert a Status to an exception.
#pragma once

namespace hopfuse {

enum class Status : int {
    ok = 0,
    out_of_memory = 1,  // a workspace could not be allocated; outputs are undefined
    bad_argument = 2,   // a caller inside the library violated the contract of the op's header
    stopped = 3,        // by the flag of hopfuse/execution.h; outputs are undefined
};

}  // namespace hopfuse
