// Loops over chunks, divided between the caller and threads of a pool. The process has one pool, which is designed for busy
// machines: any free thread takes the next chunk, the caller never waits for a thread that has not started, and a thread
// without work spins for at most 20 microseconds before it sleeps.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>

#include "hopfuse/execution.h"
#include "hopfuse/status.h"

namespace hopfuse {

// A call that runs on another number of threads and is stopped by the same flag.
static inline Execution on_threads(const Execution& call, int32_t threads) { return {threads, call.stop}; }

// Thrown out of a loop whose call was stopped.
struct Stopped {
    Stopped() = default;
    Stopped(const Stopped&) = default;
    Stopped& operator=(const Stopped&) = default;
    virtual ~Stopped();  // defined in threads.cpp, so that the data of the type is there alone
};

// Throws Stopped if the call is to stop. For loops that are one chunk, or in one.
void check_stop(const Execution& execution);

// Runs body(context, begin, end, thread) over chunks of 0 .. count - 1, each once, on at most execution.threads threads;
// `thread` is below that number, and never two bodies with the same value run at the same time. If other calls use the pool's
// threads, or no thread can be created, fewer threads run; the caller always does. Looks at the stop flag before each chunk:
// the caller gets Stopped, or else the first exception of a body, once no body runs.
using ChunkBody = void (*)(const void* context, int64_t begin, int64_t end, int thread);
void run_chunks(int64_t count, int64_t chunk, const Execution& execution, ChunkBody body, const void* context);

// Allocates the exception state of this thread. The C++ library does so at a thread's first exception, and ends the process
// if there is no memory, which may be why there is an exception.
void ready_to_throw();

// The number of threads that the pool has started in this process: at most the largest number of any call, minus 1.
int pool_size();

// The status of a kernel's body: what it returns, or why it ended early. Static, like all inline code that is compiled for
// several instruction sets.
template <class Body>
static inline Status status_of(const Body& body) {
    try {
        return body();
    } catch (const Stopped&) {
        return Status::stopped;
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory;
    } catch (const std::length_error&) {  // of a vector that no memory could hold
        return Status::out_of_memory;
    }
}

#if defined(HOPFUSE_ISA_NS)
namespace HOPFUSE_ISA_NS {

// The number of threads, at most `most`, for `work` units of work. Each needs at least `grain` units, as waking a thread
// costs time.
inline int32_t threads_worth(int64_t work, int64_t grain, int32_t most) {
    const int64_t worth = 1 + work / grain;
    return worth < most ? static_cast<int32_t>(worth) : most;
}

// Calls body(i, thread) for i = 0 .. count - 1, in chunks of `chunk`.
template <class Body>
void parallel_for(int64_t count, int64_t chunk, const Execution& execution, const Body& body) {
    const ChunkBody run = [](const void* context, int64_t begin, int64_t end, int thread) {
        const Body& call = *static_cast<const Body*>(context);
        for (int64_t i = begin; i < end; ++i) call(i, thread);
    };
    run_chunks(count, chunk, execution, run, &body);
}

// The same for many short iterations of equal work: eight chunks per thread, or more if they would take long.
template <class Body>
void parallel_for(int64_t count, const Execution& execution, const Body& body) {
    constexpr int64_t most = 1 << 13;
    const int64_t equal = 1 + count / (8 * int64_t{execution.threads});
    parallel_for(count, equal < most ? equal : most, execution, body);
}

}  // namespace HOPFUSE_ISA_NS
#endif

}  // namespace hopfuse
