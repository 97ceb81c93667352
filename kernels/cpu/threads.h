// Loops over chunks, shared by the caller and threads of a pool. The pool is one for the process and is made for machines
// that are busy: whoever is free takes the next chunk, the caller never waits for a thread that has not begun, and a thread
// without work spins for 20 microseconds at most before it sleeps.
#pragma once

#include <cstdint>

namespace hopfuse {

// Runs body(context, begin, end, thread) over chunks of 0 .. count - 1, each once, on at most `threads` threads; `thread` is
// below `threads`, and no two bodies run at a time with the same one. Bodies must not throw where threads > 1. Where other
// calls have the pool's threads, or none can be made, fewer run: the caller always does.
using ChunkBody = void (*)(const void* context, int64_t begin, int64_t end, int thread);
void run_chunks(int64_t count, int64_t chunk, int threads, ChunkBody body, const void* context);

// Threads that the pool has started in this process: at most the largest `threads` of a call, less 1.
int pool_size();

#if defined(HOPFUSE_ISA_NS)
namespace HOPFUSE_ISA_NS {

// Threads that `work` units are worth, `grain` of them each, of at most `most`: another thread has to be woken for them.
inline int32_t threads_worth(int64_t work, int64_t grain, int32_t most) {
    const int64_t worth = 1 + work / grain;
    return worth < most ? static_cast<int32_t>(worth) : most;
}

// body(i, thread) for i = 0 .. count - 1, `chunk` of them at a time.
template <class Body>
void parallel_for(int64_t count, int64_t chunk, int threads, const Body& body) {
    const ChunkBody run = [](const void* context, int64_t begin, int64_t end, int thread) {
        const Body& call = *static_cast<const Body*>(context);
        for (int64_t i = begin; i < end; ++i) call(i, thread);
    };
    run_chunks(count, chunk, threads, run, &body);
}

// The same for many iterations of little and equal work: eight chunks a thread.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
    parallel_for(count, 1 + count / (8 * int64_t{threads}), threads, body);
}

}  // namespace HOPFUSE_ISA_NS
#endif

}  // namespace hopfuse
