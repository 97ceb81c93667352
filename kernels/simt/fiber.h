// A fiber: its own stack and the place to continue from. Only the scheduler switches to fibers, and fibers only switch back
// to the scheduler. The sanitizers are told of every switch.
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

// The fiber will start in entry(), which must never return and must call leave_for_good() instead.
void prepare(Fiber& fiber, void (*entry)());

// Scheduler: continue the fiber until it pauses or leaves.
void resume(Fiber& fiber);

// Fiber: first thing in entry().
void arrived();
// Fiber: back to the scheduler, to be resumed later, or never.
void pause(Fiber& fiber);
[[noreturn]] void leave_for_good(Fiber& fiber);

// ThreadSanitizer's view; each does nothing in the other builds.
void tsan_create(Fiber& fiber, const char* name);
void tsan_destroy(Fiber& fiber);
// Everything the fibers did so far happens before everything that each does next. No stack is switched.
void tsan_join(Fiber* const* fibers, size_t count);
// Everything the fibers did happens before what the scheduler does next.
void tsan_join_scheduler(Fiber* const* fibers, size_t count);
// The running fiber's, by address.
void tsan_release(const void* address);
void tsan_acquire(const void* address);
// Turns [begin, begin + size), whole pages, into memory that no thread has accessed; its contents are lost.
void fresh_pages(char* begin, size_t size);

}  // namespace simt
