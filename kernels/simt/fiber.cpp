#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_ASSEMBLY 1
#else
#define SIMT_ASSEMBLY 0
#include <ucontext.h>
#endif

namespace simt {

// ------------------------------------------------------------------------------------------------
// Stacks

// Ends the process, which may have as many mappings as vm.max_map_count allows: a stack is two of them.
[[noreturn]] static void end_without_stack() {
    std::fprintf(stderr, "simt: no memory for the stack of a thread: %s\n", std::strerror(errno));
    abort();
}

Stack allocate_stack(size_t size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* all = mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || mprotect(all, page, PROT_NONE) != 0) end_without_stack();
    return {static_cast<char*>(all) + page, size};
}

void free_stack(Stack stack) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    munmap(stack.base - page, stack.size + page);
}

void clean_stack([[maybe_unused]] Stack stack) {
#if defined(SIMT_ASAN)
    __asan_unpoison_memory_region(stack.base, stack.size);
#endif
}

void fresh_pages(char* begin, size_t size) {
    if (mmap(begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        end_without_stack();
}

// ------------------------------------------------------------------------------------------------
// The switch

#if SIMT_ASSEMBLY

extern "C" void simt_switch(void** save, void* load);
asm(R"(
    .text
    .p2align 4
    .globl simt_switch
    .hidden simt_switch
    .type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simt_switch, . - simt_switch
)");

static void* scheduler_context;

static void make_context(Fiber& fiber, void (*entry)()) {
    void** top = reinterpret_cast<void**>(fiber.stack.base + fiber.stack.size);
    *--top = nullptr;  // the return address of entry: backtraces end here
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber.context = top;
}
static void switch_in(Fiber& fiber) { simt_switch(&scheduler_context, fiber.context); }
static void switch_out(Fiber& fiber) { simt_switch(&fiber.context, scheduler_context); }

#else

static ucontext_t scheduler_context;

static void make_context(Fiber& fiber, void (*entry)()) {
    // The context lies at the top of its own stack.
    const size_t room = (sizeof(ucontext_t) + 63) / 64 * 64;
    ucontext_t* context = reinterpret_cast<ucontext_t*>(fiber.stack.base + fiber.stack.size - room);
    getcontext(context);
    context->uc_stack.ss_sp = fiber.stack.base;
    context->uc_stack.ss_size = fiber.stack.size - room;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    fiber.context = context;
}
static void switch_in(Fiber& fiber) { swapcontext(&scheduler_context, static_cast<ucontext_t*>(fiber.context)); }
static void switch_out(Fiber& fiber) { swapcontext(static_cast<ucontext_t*>(fiber.context), &scheduler_context); }

#endif

#if defined(SIMT_ASAN)
static const void* scheduler_stack;
static size_t scheduler_stack_size;
static void* scheduler_fake_stack;
#endif
#if defined(SIMT_TSAN)
static void* scheduler_tsan;
#endif

void prepare(Fiber& fiber, void (*entry)()) {
    fiber.fake_stack = nullptr;
    make_context(fiber, entry);
}

void resume(Fiber& fiber) {
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, fiber.stack.base, fiber.stack.size);
#endif
#if defined(SIMT_TSAN)
    scheduler_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber.tsan, __tsan_switch_to_fiber_no_sync);
#endif
    switch_in(fiber);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
#endif
}

void arrived() {
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_size);
#endif
}

static void back_to_scheduler(Fiber& fiber, [[maybe_unused]] void** fake_stack) {
#if defined(SIMT_ASAN)
    __sanitizer_start_switch_fiber(fake_stack, scheduler_stack, scheduler_stack_size);
#endif
#if defined(SIMT_TSAN)
    __tsan_switch_to_fiber(scheduler_tsan, __tsan_switch_to_fiber_no_sync);
#endif
    switch_out(fiber);
}

void pause(Fiber& fiber) {
    back_to_scheduler(fiber, &fiber.fake_stack);
#if defined(SIMT_ASAN)
    __sanitizer_finish_switch_fiber(fiber.fake_stack, &scheduler_stack, &scheduler_stack_size);
#endif
}

void leave_for_good(Fiber& fiber) {
    back_to_scheduler(fiber, nullptr);
    abort();
}

// ------------------------------------------------------------------------------------------------
// ThreadSanitizer: happens-before between fibers, stated and not observed. Each sync object is a block of
// its own from malloc, so that nothing is left over from an earlier one.

#if defined(SIMT_TSAN)

void tsan_create(Fiber& fiber, const char* name) {
    fiber.tsan = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fiber.tsan, name);
}

void tsan_destroy(Fiber& fiber) {
    if (fiber.tsan != nullptr) __tsan_destroy_fiber(fiber.tsan);
    fiber.tsan = nullptr;
}

template <class Each>
static void as_each(Fiber* const* fibers, size_t count, Each each) {
    void* self = __tsan_get_current_fiber();
    for (size_t i = 0; i < count; ++i) {
        __tsan_switch_to_fiber(fibers[i]->tsan, __tsan_switch_to_fiber_no_sync);
        each();
    }
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
}

void tsan_join(Fiber* const* fibers, size_t count) {
    void* meeting = malloc(16);
    as_each(fibers, count, [=] { __tsan_release(meeting); });
    as_each(fibers, count, [=] { __tsan_acquire(meeting); });
    free(meeting);
}

void tsan_join_scheduler(Fiber* const* fibers, size_t count) {
    void* meeting = malloc(16);
    as_each(fibers, count, [=] { __tsan_release(meeting); });
    __tsan_acquire(meeting);
    free(meeting);
}

void tsan_release(const void* address) { __tsan_release(const_cast<void*>(address)); }
void tsan_acquire(const void* address) { __tsan_acquire(const_cast<void*>(address)); }

#else

void tsan_release(const void*) {}
void tsan_acquire(const void*) {}
void tsan_create(Fiber&, const char*) {}
void tsan_destroy(Fiber&) {}
void tsan_join(Fiber* const*, size_t) {}
void tsan_join_scheduler(Fiber* const*, size_t) {}

#endif

}  // namespace simt
