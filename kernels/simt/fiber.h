// A fiber: a stack of its own and a place to go on from. Only the scheduler switches to fibers, and a fiber
// only back to the scheduler. The sanitizers are told of every switch.
#pragma once

#include <cstddef>

namespace simt {

struct Stack {
    char* base = nullptr;  // lowest usable byte; a guard page lies below
    size_t size = 0;
};

Stack allocate_stack(size_t size);
void free_stack(Stack stack);

// Makes a stack whose frames were abandoned usable again.
void clean_stack(Stack stack);

struct Fiber {
    Stack stack;
    void* context = nullptr;
    void* fake_stack = nullptr;  // AddressSanitizer's
    void* tsan = nullptr;        // ThreadSanitizer's
};

// The fiber will start in entry(), which must never return but call leave_for_good().
void prepare(Fiber& fiber, void (*entry)());

// Scheduler: go on in the fiber until it pauses or leaves.
void resume(Fiber& fiber);

// Fiber: first thing in entry().
void arrived();
// Fiber: back to the scheduler, to be resumed later, or never.
void pause(Fiber& fiber);
[[noreturn]] void leave_for_good(Fiber& fiber);

// ThreadSanitizer's view; each does nothing in the other builds.
void tsan_create(Fiber& fiber, const char* name);
void tsan_destroy(Fiber& fiber);
// All that the fibers did so far happens before all that each does next. Nobody's stack is switched.
void tsan_join(Fiber* const* fibers, size_t count);
// All that the fibers did happens before what the scheduler does next.
void tsan_join_scheduler(Fiber* const* fibers, size_t count);
// The running fiber's, by address.
void tsan_release(const void* address);
void tsan_acquire(const void* address);
// [begin, begin + size), whole pages, becomes memory that no thread has touched, its contents lost.
void fresh_pages(char* begin, size_t size);

}  // namespace simt
