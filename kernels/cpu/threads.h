// Loops over chunks, divided between the caller and threads of a pool. The process has one pool, which is designed for busy
// machines: any free thread takes the next chunk, the caller never waits for a thread that has not started, and a thread
// without work spins for at most 20 microseconds before it sleeps.
#pragma once

#include <cstdint>

namespace hopfuse {

// Runs body(context, begin, end, thread) over chunks of 0 .. count - 1, each once, on at most `threads` threads; `thread` is
// below `threads`, and never two bodies with the same value run at the same time. Bodies must not throw if threads > 1. If
// other calls use the pool's threads, or no thread can be created, fewer threads run; the caller always does.
using ChunkBody = void (*)(const void* context, int64_t begin, int64_t end, int thread);
void run_chunks(int64_t count, int64_t chunk, int threads, ChunkBody body, const void* context);

// The number of threads that the pool has started in this process: at most the largest `threads` of any call, minus 1.
int pool_size();

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
void parallel_for(int64_t count, int64_t chunk, int threads, const Body& body) {
    const ChunkBody run = [](const void* context, int64_t begin, int64_t end, int thread) {
        const Body& call = *static_cast<const Body*>(context);
        for (int64_t i = begin; i < end; ++i) call(i, thread);
    };
    run_chunks(count, chunk, threads, run, &body);
}

// The same for many short iterations of equal work: eight chunks per thread.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
    parallel_for(count, 1 + count / (8 * int64_t{threads}), threads, body);
}

}  // namespace HOPFUSE_ISA_NS
#endif

}  // namespace hopfuse
