// Runs a grid, with each of its threads as a fiber on a single host thread. A fiber runs until it waits at a barrier or a warp
// operation, or ends; then the threads that can continue run in the order of the launch. Blocks run one after another; those of
// a cooperative launch are all there at once.
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api.h"
#include "fiber.h"
#include "mma.h"
#include "runtime.h"
#include "traffic.h"

#if defined(SIMT_ASAN) || defined(SIMT_TSAN)
#include <sanitizer/common_interface_defs.h>
#define SIMT_SANITIZED 1
#else
#define SIMT_SANITIZED 0
#endif

namespace simt {

extern char shared_begin[], shared_end[];  // shared_begin.cpp, shared_end.cpp

Coordinates running;

namespace {

#if defined(SIMT_TSAN)
constexpr bool with_tsan = true;
#else
constexpr bool with_tsan = false;
#endif

constexpr size_t stack_bytes = 256 * 1024;
constexpr unsigned max_block_threads = 1024;
// A fiber's number must not be reused within a launch, or ThreadSanitizer would miss races between its old and its new owner.
// It supports 8192 threads and takes nearly a megabyte for each.
constexpr uint64_t max_tsan_threads = 2048;
constexpr unsigned most_blocks_together = 64;
constexpr int idle_atomics_before_yield = 64;
constexpr int idle_yields_before_error = 1 << 12;
constexpr unsigned most_copies = 256;  // of a thread, under way

enum class State : int { ready, at_barrier, at_grid_barrier, in_warp_operation, done };

struct WarpRequest {
    WarpKind kind;
    unsigned mask;
    uint64_t value;
    int value_bytes, lane_argument, width;
};

struct Thread {
    Fiber fiber;
    Index index;
    unsigned lane, warp;
    State state;
    Site site;  // of the operation it waits in
    WarpRequest request;
    int predicate;
    uint64_t result;
    // The last atomic that changed nothing, and how often it was repeated since.
    const void* idle_address;
    uint64_t idle_operand;
    int idle_atomics, idle_yields;
    // Asynchronous copies that have not arrived, a ring in their order, and the number of groups that have ended.
    Copy copies[most_copies];
    unsigned first_copy, num_copies, copy_groups;
};

struct Warp {
    unsigned lanes, waiting, exited;  // bit sets
};

struct Random {  // splitmix64
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return next() % bound; }
};

struct Block {
    Index index;
    // None of these grows while a fiber runs: ThreadSanitizer would take the copying for the kernel's.
    std::vector<Thread*> threads;  // by number
    std::vector<Fiber*> fibers;    // theirs
    std::vector<Warp> warps;
    std::vector<Thread*> ready, next_ready;
    unsigned at_barrier, exited;
    Thread* first_at_barrier;
    BarrierKind barrier_kind;
    Thread* at_grid_barrier;  // for the block
    char* dynamic_shared;
};

struct Launch {
    const Kernel* kernel;
    simt_launch_call* call;
    unsigned block_threads;
    std::vector<Block> blocks;  // of a cooperative launch all, else one after another in the same place
    Block* block;               // the running one
    Thread* current;
    unsigned at_grid_barrier;      // blocks that wait there
    const unsigned* grid_counter;  // that of the barrier
    std::vector<char*> dynamic_shared_of_blocks;
    Random random;
    std::string error;
    bool in_fiber;
};

Launch now;
std::vector<std::unique_ptr<Thread>> threads;  // kept from launch to launch, but for ThreadSanitizer's build

// ------------------------------------------------------------------------------------------------
// Errors

std::string format(const char* text, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* text, ...) {
    va_list list;
    va_start(list, text);
    char line[1024];
    vsnprintf(line, sizeof line, text, list);
    va_end(list);
    return line;
}

std::string name_of(Index i) { return format("(%u,%u,%u)", i.x, i.y, i.z); }

std::string name_of(Site site) {
    const char* slash = strrchr(site.file, '/');
    return format("%s:%d", slash == nullptr ? site.file : slash + 1, site.line);
}

std::string name_of(WarpKind kind) {
    switch (kind) {
        case WarpKind::sync: return "__syncwarp";
        case WarpKind::shuffle_index: return "__shfl_sync";
        case WarpKind::shuffle_up: return "__shfl_up_sync";
        case WarpKind::shuffle_down: return "__shfl_down_sync";
        case WarpKind::shuffle_xor: return "__shfl_xor_sync";
        case WarpKind::ballot: return "__ballot_sync";
        case WarpKind::all: return "__all_sync";
        case WarpKind::any: return "__any_sync";
        case WarpKind::match_any: return "__match_any_sync";
        case WarpKind::mma: return "mma.sync";
        case WarpKind::mma_bytes: return "mma.sync";
    }
    return "?";
}

std::string where(const Thread& t) {
    return "kernel " + std::string(now.kernel->name) + ", block " + name_of(running.block) + ", thread " +
           name_of(t.index) + format(" (warp %u, lane %u)", t.warp, t.lane);
}

std::string waits(const Thread& t) {
    switch (t.state) {
        case State::ready: return "can run";
        case State::done: return "has ended";
        case State::at_barrier: return "waits in __syncthreads at " + name_of(t.site);
        case State::at_grid_barrier: return "waits in a grid barrier";
        case State::in_warp_operation:
            return "waits in " + name_of(t.request.kind) + format(" with mask 0x%08x at ", t.request.mask) +
                   name_of(t.site);
    }
    return "?";
}

std::string thread_that(const Thread& t) { return "thread " + name_of(t.index) + " " + waits(t); }

void report(const char* kind, const std::string& text) {
    if (now.error.empty()) now.error = std::string(kind) + ": " + where(*now.current) + ": " + text;
}

[[noreturn]] void fail(const char* kind, const std::string& text) {
    report(kind, text);
    for (;;) pause(now.current->fiber);  // never resumed
}

// ------------------------------------------------------------------------------------------------
// Order

template <class T>
void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[now.random.below(i)]);
}

void make_ready(Thread* const* list, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        Thread* t = list[now.call->order == SIMT_REVERSE ? count - 1 - i : i];
        t->state = State::ready;
        now.block->next_ready.push_back(t);
    }
}

void yield() {
    now.block->next_ready.push_back(now.current);
    pause(now.current->fiber);
}

// ------------------------------------------------------------------------------------------------
// Barriers

void complete_barrier() {
    Block& block = *now.block;
    int agreeing = 0;
    for (const Thread* t : block.threads) agreeing += t->predicate;
    int result = 0;
    if (block.barrier_kind == BarrierKind::count) result = agreeing;
    if (block.barrier_kind == BarrierKind::all) result = agreeing == static_cast<int>(now.block_threads);
    if (block.barrier_kind == BarrierKind::any) result = agreeing > 0;
    for (Thread* t : block.threads) t->result = static_cast<uint64_t>(result);
    block.at_barrier = 0;
    ++now.call->counters.barriers;
    make_ready(block.threads.data(), block.threads.size());
    tsan_join(block.fibers.data(), block.fibers.size());
}

bool same_site(Site a, Site b) { return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0); }

}  // namespace

int barrier(BarrierKind kind, int predicate, Site site) {
    Thread& self = *now.current;
    Block& block = *now.block;
    self.site = site;
    if (block.exited > 0)
        for (const Thread* t : block.threads)
            if (t->state == State::done)
                fail("barrier", "__syncthreads at " + name_of(site) + ", but " + thread_that(*t));
    if (block.at_barrier > 0 && (kind != block.barrier_kind || !same_site(site, block.first_at_barrier->site)))
        fail("barrier", "__syncthreads at " + name_of(site) + ", but " + thread_that(*block.first_at_barrier));
    if (block.at_barrier == 0) {
        block.first_at_barrier = &self;
        block.barrier_kind = kind;
    }
    self.predicate = predicate != 0;
    self.state = State::at_barrier;
    if (++block.at_barrier == now.block_threads) complete_barrier();
    pause(self.fiber);
    return static_cast<int>(self.result);
}

namespace {

void complete_grid_barrier(unsigned* arrived) {
    Fiber* fibers[most_blocks_together];
    size_t count = 0;
    for (Block& block : now.blocks) {
        fibers[count++] = &block.at_grid_barrier->fiber;
        block.at_grid_barrier->state = State::ready;
        block.next_ready.push_back(block.at_grid_barrier);
        block.at_grid_barrier = nullptr;
    }
    now.at_grid_barrier = 0;
    ++now.call->counters.grid_barriers;
    *arrived ^= 0x80000000u;  // as on a device
    tsan_join(fibers, count);
}

}  // namespace

void meet_other_blocks(unsigned* arrived) {
    Thread& self = *now.current;
    if (now.call->cooperative == 0) fail("barrier", "a grid barrier in a launch that is not cooperative");
    for (const Block& block : now.blocks)
        if (block.exited > 0)
            fail("barrier", "a grid barrier, but a thread of block " + name_of(block.index) + " has ended");
    if (now.at_grid_barrier > 0 && arrived != now.grid_counter)
        fail("barrier", "a grid barrier, but other blocks wait in another one");
    if ((*arrived & 0x7fffffffu) != 0)
        fail("barrier", format("the counter of a grid barrier is 0x%08x; its lower 31 bits must be 0", *arrived));
    now.grid_counter = arrived;
    now.block->at_grid_barrier = &self;
    self.state = State::at_grid_barrier;
    if (++now.at_grid_barrier == now.blocks.size()) complete_grid_barrier(arrived);
    pause(self.fiber);
}

// ------------------------------------------------------------------------------------------------
// Warp operations

namespace {

Thread& lane_of(const Thread& t, unsigned lane) { return *now.block->threads[t.warp * 32 + lane]; }

template <class Each>
void for_lanes(unsigned mask, Each each) {
    for (; mask != 0; mask &= mask - 1) each(static_cast<unsigned>(__builtin_ctz(mask)));
}

// PTX shfl.sync: b has five bits, and a source outside the segment is the lane itself.
unsigned source_lane(const Thread& t) {
    const WarpRequest& r = t.request;
    const unsigned b = static_cast<unsigned>(r.lane_argument) & 31u, width = static_cast<unsigned>(r.width);
    const unsigned first = t.lane & ~(width - 1), end = first + width;
    switch (r.kind) {
        case WarpKind::shuffle_index: return first | (b & (width - 1));
        case WarpKind::shuffle_up: return t.lane >= first + b ? t.lane - b : t.lane;
        case WarpKind::shuffle_down: return t.lane + b < end ? t.lane + b : t.lane;
        case WarpKind::shuffle_xor: return (t.lane ^ b) < end ? t.lane ^ b : t.lane;
        default: return t.lane;
    }
}

bool is_shuffle(WarpKind kind) { return kind >= WarpKind::shuffle_index && kind <= WarpKind::shuffle_xor; }

uint64_t result_for(const Thread& t) {
    const unsigned mask = t.request.mask;
    if (is_shuffle(t.request.kind)) return lane_of(t, source_lane(t)).request.value;
    unsigned agreeing = 0;
    const bool match = t.request.kind == WarpKind::match_any;
    for_lanes(mask, [&](unsigned lane) {
        const uint64_t value = lane_of(t, lane).request.value;
        if (match ? value == t.request.value : value != 0) agreeing |= 1u << lane;
    });
    if (t.request.kind == WarpKind::all) return agreeing == mask;
    if (t.request.kind == WarpKind::any) return agreeing != 0;
    return agreeing;
}

void check_request(const Thread& self, const Warp& warp) {
    const WarpRequest& r = self.request;
    // Only for errors: this is called for every lane.
    const auto what = [&] { return name_of(r.kind) + format(" with mask 0x%08x at ", r.mask) + name_of(self.site); };
    if (((r.mask >> self.lane) & 1u) == 0) fail("warp", what() + ": the mask lacks the calling lane");
    if ((r.mask & ~warp.lanes) != 0)
        fail("warp", what() + format(": the block has no lane %d in this warp", __builtin_ctz(r.mask & ~warp.lanes)));
    if (r.width < 1 || r.width > 32 || (r.width & (r.width - 1)) != 0)
        fail("warp", what() + format(": width %d is no power of two from 1 to 32", r.width));
    if (is_shuffle(r.kind) && ((r.mask >> source_lane(self)) & 1u) == 0)
        fail("warp", what() + format(": reads lane %u, which the mask lacks", source_lane(self)));
    if ((r.mask & warp.exited) != 0)
        fail("warp", what() + ": " + thread_that(lane_of(self, __builtin_ctz(r.mask & warp.exited))));
    for_lanes(r.mask & warp.waiting, [&](unsigned lane) {
        const Thread& other = lane_of(self, lane);
        const WarpRequest& o = other.request;
        if (((o.mask >> self.lane) & 1u) == 0) return;  // it waits for others, and may come to this one later
        const bool same = o.kind == r.kind && o.mask == r.mask && o.width == r.width &&
                          o.value_bytes == r.value_bytes &&
                          (r.kind == WarpKind::sync || same_site(self.site, other.site));
        if (!same) fail("warp", what() + ", but " + thread_that(other));
    });
}

template <class Parts, class... Unit>
void multiply(Thread* const* lanes, Unit... unit) {
    const Parts* parts[32];
    for (int i = 0; i < 32; ++i)
        parts[i] = reinterpret_cast<const Parts*>(static_cast<uintptr_t>(lanes[i]->request.value));
    multiply_add(parts, unit...);
}

void complete_if_all_there(const Thread& self, Warp& warp) {
    const unsigned mask = self.request.mask;
    if ((warp.waiting & mask) != mask) return;
    Thread* lanes[32];
    Fiber* fibers[32];
    size_t count = 0;
    bool all = true;
    for_lanes(mask, [&](unsigned lane) {
        lanes[count] = &lane_of(self, lane);
        fibers[count] = &lanes[count]->fiber;
        all = all && lanes[count]->request.mask == mask;
        ++count;
    });
    if (!all) return;
    if (self.request.kind == WarpKind::mma) multiply<MatrixParts>(lanes, static_cast<simt_mma>(now.call->mma));
    else if (self.request.kind == WarpKind::mma_bytes) multiply<ByteMatrixParts>(lanes);
    else
        for (size_t i = 0; i < count; ++i) lanes[i]->result = result_for(*lanes[i]);
    warp.waiting &= ~mask;
    ++now.call->counters.warp_ops;
    make_ready(lanes, count);
    // Of the warp operations only __syncwarp orders memory.
    if (self.request.kind == WarpKind::sync) tsan_join(fibers, count);
}

}  // namespace

uint64_t warp_operation(WarpKind kind, unsigned mask, uint64_t value, int value_bytes, int lane_argument, int width,
                        Site site) {
    Thread& self = *now.current;
    Warp& warp = now.block->warps[self.warp];
    self.request = {kind, mask, value, value_bytes, lane_argument, width};
    self.site = site;
    check_request(self, warp);
    warp.waiting |= 1u << self.lane;
    self.state = State::in_warp_operation;
    complete_if_all_there(self, warp);
    pause(self.fiber);
    return self.result;
}

void mma(const MatrixParts& parts, Site site) {
    warp_operation(WarpKind::mma, 0xffffffffu, reinterpret_cast<uintptr_t>(&parts), sizeof(void*), 0, 32, site);
}

void mma(const ByteMatrixParts& parts, Site site) {
    warp_operation(WarpKind::mma_bytes, 0xffffffffu, reinterpret_cast<uintptr_t>(&parts), sizeof(void*), 0, 32, site);
}

// ------------------------------------------------------------------------------------------------
// Atomics, copies, shared memory, trap

void before_atomic() {
    ++now.call->counters.atomics;
    if (now.call->order == SIMT_SHUFFLE && now.random.below(4) == 0) yield();
}

void after_atomic(const void* address, uint64_t operand, bool changed) {
    Thread& self = *now.current;
    const bool idle = !changed && address == self.idle_address && operand == self.idle_operand;
    if (!idle) self.idle_atomics = self.idle_yields = 0;
    self.idle_address = changed ? nullptr : address;
    self.idle_operand = operand;
    if (!idle || ++self.idle_atomics < idle_atomics_before_yield) return;
    self.idle_atomics = 0;
    if (++self.idle_yields > idle_yields_before_error)
        fail("livelock", "an atomic that changes nothing is repeated for ever: it waits for a thread that cannot run");
    yield();
}

bool begin_copy(const Copy& copy) {
    Thread& self = *now.current;
    if (now.call->order == SIMT_REVERSE || (now.call->order == SIMT_SHUFFLE && now.random.below(2) == 0)) return true;
    if (self.num_copies == most_copies)
        fail("shared", format("more than %u copies of a thread are under way", most_copies));
    Copy& kept = self.copies[(self.first_copy + self.num_copies++) % most_copies];
    kept = copy;
    kept.group = self.copy_groups;
    return false;
}

void end_copies() { ++now.current->copy_groups; }

const Copy* next_copy(int groups) {
    Thread& self = *now.current;
    if (self.num_copies == 0) return nullptr;
    const Copy& first = self.copies[self.first_copy];
    if (static_cast<int>(self.copy_groups - first.group) <= groups) return nullptr;
    self.first_copy = (self.first_copy + 1) % most_copies;
    --self.num_copies;
    return &first;
}

void release(const void* address) { tsan_release(address); }
void acquire(const void* address) { tsan_acquire(address); }

void* dynamic_shared() {
    if (now.call->dynamic_shared == 0)
        fail("shared", "the kernel uses dynamic shared memory, and the launch asked for 0 bytes");
    return now.block->dynamic_shared;
}

void trap(Site site) { fail("trap", "__trap at " + name_of(site)); }

// ------------------------------------------------------------------------------------------------
// A thread's life

namespace {

void end_thread(Thread& self) {
    Warp& warp = now.block->warps[self.warp];
    Block& block = *now.block;
    if (block.at_barrier > 0) fail("barrier", "it ends, but " + thread_that(*block.first_at_barrier));
    if (now.at_grid_barrier > 0) fail("barrier", "it ends, but other blocks wait in a grid barrier");
    for_lanes(warp.waiting, [&](unsigned lane) {
        const Thread& other = lane_of(self, lane);
        if (((other.request.mask >> self.lane) & 1u) != 0) fail("warp", "it ends, but " + thread_that(other));
    });
    warp.exited |= 1u << self.lane;
    ++block.exited;
    self.state = State::done;
}

void thread_main() {
    arrived();
    now.kernel->call(now.call->arguments);
    Thread& self = *now.current;
    end_thread(self);
    leave_for_good(self.fiber);
}

// Not memset: that of the sanitizers would stop at the red zones between shared arrays.
void poison(char* begin, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) *reinterpret_cast<volatile uint64_t*>(begin + i) = ~uint64_t{0};
    for (; i < size; ++i) *reinterpret_cast<volatile unsigned char*>(begin + i) = 0xff;
}

// Exactly as large as requested, so that AddressSanitizer detects accesses beyond its end.
char* allocate_dynamic_shared(size_t size) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, size) != 0) abort();
    now.dynamic_shared_of_blocks.push_back(static_cast<char*>(memory));
    return static_cast<char*>(memory);
}

// ------------------------------------------------------------------------------------------------
// A block

Thread& thread_number(size_t number) {
    while (threads.size() <= number) {
        threads.push_back(std::make_unique<Thread>());
        threads.back()->fiber.stack = allocate_stack(stack_bytes);
    }
    return *threads[number];
}

char* dynamic_shared_of(char* before) {
    const simt_launch_call& call = *now.call;
    if (call.dynamic_shared == 0) return nullptr;
    // For ThreadSanitizer, reused memory would be shared by two blocks.
    const bool is_new = with_tsan || call.cooperative != 0 || before == nullptr;
    char* const memory = is_new ? allocate_dynamic_shared(call.dynamic_shared) : before;
    poison(memory, call.dynamic_shared);
    return memory;
}

void enter(Block& block) {
    now.block = &block;
    running.block = block.index;
    traffic_dynamic_shared(block.dynamic_shared, now.call->dynamic_shared);
}

// Begins a block in this place; `threads_before` are in use.
void begin_block(Block& block, uint64_t block_number, uint64_t threads_before) {
    const simt_launch_call& call = *now.call;
    block.index = {static_cast<unsigned>(block_number % call.grid[0]),
                   static_cast<unsigned>(block_number / call.grid[0] % call.grid[1]),
                   static_cast<unsigned>(block_number / call.grid[0] / call.grid[1])};
    char* const shared_first = shared_begin + 4096;
    const size_t shared_size = static_cast<size_t>(shared_end - shared_first);
    if (with_tsan && shared_size > 0) fresh_pages(shared_first, shared_size);
    poison(shared_first, shared_size);
    block.dynamic_shared = dynamic_shared_of(block.dynamic_shared);
    enter(block);

    block.threads.clear();
    block.fibers.clear();
    block.ready.reserve(now.block_threads);
    block.next_ready.clear();
    block.next_ready.reserve(now.block_threads);
    block.warps.assign((now.block_threads + 31) / 32, Warp{});
    block.at_barrier = block.exited = 0;
    block.at_grid_barrier = nullptr;
    for (unsigned i = 0; i < now.block_threads; ++i) {
        Thread& t = thread_number(threads_before + i);
        t.index = {i % call.block[0], i / call.block[0] % call.block[1], i / call.block[0] / call.block[1]};
        t.lane = i % 32;
        t.warp = i / 32;
        t.predicate = 0;
        t.idle_address = nullptr;
        t.idle_atomics = t.idle_yields = 0;
        t.first_copy = t.num_copies = t.copy_groups = 0;
        prepare(t.fiber, thread_main);
        if (with_tsan)
            tsan_create(t.fiber, ("block " + name_of(running.block) + " thread " + name_of(t.index)).c_str());
        block.warps[t.warp].lanes |= 1u << t.lane;
        block.threads.push_back(&t);
        block.fibers.push_back(&t.fiber);
    }
    make_ready(block.threads.data(), block.threads.size());
}

// Of a block whose threads wait for each other.
void report_deadlock() {
    // The others wait for the thread at the barrier, if there is one, because it cannot reach them.
    const Thread *in_warp = nullptr, *at_barrier = nullptr;
    for (const Thread* t : now.block->threads) {
        if (t->state == State::in_warp_operation && in_warp == nullptr) in_warp = t;
        if (t->state == State::at_barrier && at_barrier == nullptr) at_barrier = t;
    }
    const Thread& waiting = *(in_warp != nullptr ? in_warp : at_barrier);
    now.current = &lane_of(waiting, waiting.lane);
    std::string text = "it " + waits(*now.current);
    const Thread* other = at_barrier;
    if (in_warp != nullptr)
        for_lanes(in_warp->request.mask, [&](unsigned lane) {
            const Thread& t = lane_of(*in_warp, lane);
            if (t.state == State::at_barrier || t.request.mask != in_warp->request.mask) other = &t;
        });
    if (other != nullptr && other != now.current) text += ", but " + thread_that(*other);
    report("deadlock", text);
}

// Runs each thread of the block that can continue, once.
void run_ready(Block& block) {
    block.ready.swap(block.next_ready);
    block.next_ready.clear();
    if (now.call->order == SIMT_SHUFFLE) shuffle(block.ready);
    for (Thread* t : block.ready) {
        now.current = t;
        running.thread = t->index;
        ++now.call->counters.switches;
        now.in_fiber = true;
        resume(t->fiber);
        now.in_fiber = false;
        if (!now.error.empty()) return;
    }
}

void run_block(Block& block) {
    while (!block.next_ready.empty() && now.error.empty()) run_ready(block);
}

// ------------------------------------------------------------------------------------------------
// Faults. In the plain build a bad address or a division by zero ends the launch with a report instead of the process. The
// sanitizers report by themselves; they are told of the thread.

#if SIMT_SANITIZED

void tell_where() {
    if (now.in_fiber) fprintf(stderr, "simt: %s\n", where(*now.current).c_str());
}

template <class Run>
void run_guarded(Run run) {
    static const bool told = (__sanitizer_set_death_callback(tell_where), true);
    (void)told;
    run();
}

// The undefined-behaviour runtime is a separate library and calls this.
extern "C" __attribute__((visibility("default"))) void __ubsan_on_report() { tell_where(); }

#else

jmp_buf fault_return;
constexpr int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void on_fault(int signal, siginfo_t* info, void*) {
    if (!now.in_fiber) {
        std::signal(signal, SIG_DFL);  // not a kernel's fault: it strikes again
        return;
    }
    const Stack stack = now.current->fiber.stack;
    const char* address = static_cast<const char*>(info->si_addr);
    if (signal == SIGFPE) report("fault", "integer division by zero or overflow of a quotient");
    else if (address < stack.base && address >= stack.base - 4096) report("fault", "stack overflow");
    else report("fault", format("bad or misaligned access (%s, address %p)", strsignal(signal), info->si_addr));
    longjmp(fault_return, 1);
}

template <class Run>
void run_guarded(Run run) {
    static char alternate[64 * 1024];
    stack_t handler_stack = {}, old_stack = {};
    handler_stack.ss_sp = alternate;
    handler_stack.ss_size = sizeof alternate;
    sigaltstack(&handler_stack, &old_stack);
    struct sigaction action = {}, old[4] = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 4; ++i) sigaction(fault_signals[i], &action, &old[i]);
    if (setjmp(fault_return) == 0) run();
    now.in_fiber = false;
    for (int i = 0; i < 4; ++i) sigaction(fault_signals[i], &old[i], nullptr);
    sigaltstack(&old_stack, nullptr);
}

#endif

// ------------------------------------------------------------------------------------------------
// A grid

const Kernel* find(const char* name) {
    for (int i = 0; i < num_kernels; ++i)
        if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
    return nullptr;
}

// Numbers of compute capability 7.5 to 12.0.
std::string refusal(const simt_launch_call& call) {
    const uint64_t threads_asked = uint64_t{call.block[0]} * call.block[1] * call.block[2];
    const uint64_t blocks = uint64_t{call.grid[0]} * call.grid[1] * call.grid[2];
    const std::string block = format("block (%u,%u,%u)", call.block[0], call.block[1], call.block[2]);
    const std::string grid = format("grid (%u,%u,%u)", call.grid[0], call.grid[1], call.grid[2]);
    if (threads_asked == 0 || call.block[0] > 1024 || call.block[1] > 1024 || call.block[2] > 64)
        return block + ": each side from 1 to 1024, 1024, 64";
    if (threads_asked > max_block_threads) return block + ": more than 1024 threads";
    if (threads_asked > now.kernel->max_threads)
        return block + format(": more threads than __launch_bounds__(%u)", now.kernel->max_threads);
    if (blocks == 0 || call.grid[0] > 2147483647u || call.grid[1] > 65535 || call.grid[2] > 65535)
        return grid + ": each side from 1 to 2147483647, 65535, 65535";
    if (call.static_shared + call.dynamic_shared > call.shared_limit)
        return format("%llu bytes of shared memory (%llu static, %llu dynamic): the limit is %llu",
                      static_cast<unsigned long long>(call.static_shared + call.dynamic_shared),
                      static_cast<unsigned long long>(call.static_shared),
                      static_cast<unsigned long long>(call.dynamic_shared),
                      static_cast<unsigned long long>(call.shared_limit));
    if (call.cooperative != 0 && call.static_shared > 0)
        return "a cooperative launch with static shared memory, which its blocks would share: use dynamic shared "
               "memory";
    if (call.cooperative != 0 && blocks > most_blocks_together)
        return grid + format(": at most %u blocks in a cooperative launch", most_blocks_together);
    if (with_tsan && blocks * threads_asked > max_tsan_threads)
        return grid + " of " + block +
               format(": ThreadSanitizer's build runs at most %llu threads a launch",
                      static_cast<unsigned long long>(max_tsan_threads));
    return "";
}

std::vector<uint64_t> order_of(uint64_t blocks) {
    std::vector<uint64_t> order(blocks);
    for (uint64_t i = 0; i < blocks; ++i) order[i] = now.call->order == SIMT_REVERSE ? blocks - 1 - i : i;
    if (now.call->order == SIMT_SHUFFLE) shuffle(order);
    return order;
}

// Shuffled, blocks take turns; else each runs until it waits for the others.
void run_together() {
    bool goes_on = true;
    while (goes_on && now.error.empty()) {
        goes_on = false;
        for (uint64_t number : order_of(now.blocks.size())) {
            Block& block = now.blocks[number];
            if (block.next_ready.empty()) continue;
            goes_on = true;
            enter(block);
            if (now.call->order == SIMT_SHUFFLE) run_ready(block);
            else run_block(block);
            if (!now.error.empty()) return;
        }
    }
    for (Block& block : now.blocks) {
        if (block.exited == now.block_threads || block.at_grid_barrier != nullptr) continue;
        enter(block);
        return report_deadlock();
    }
}

void run_grid() {
    const simt_launch_call& call = *now.call;
    const uint64_t blocks = uint64_t{call.grid[0]} * call.grid[1] * call.grid[2];
    const bool together = call.cooperative != 0;
    now.blocks.assign(together ? blocks : 1, Block{});
    uint64_t begun = 0;
    for (uint64_t number : order_of(blocks)) {
        Block& block = now.blocks[together ? number : 0];
        begin_block(block, number, together || with_tsan ? begun * now.block_threads : 0);
        ++begun;
        if (!together) {
            run_block(block);
            if (now.error.empty() && block.exited != now.block_threads) report_deadlock();
        }
        if (!now.error.empty()) break;
    }
    if (together) run_together();
    now.call->counters.blocks = begun;
    now.call->counters.threads = begun * now.block_threads;
}

void end_tsan_threads() {
    std::vector<Fiber*> fibers;
    for (auto& t : threads)
        if (t->fiber.tsan != nullptr) fibers.push_back(&t->fiber);
    tsan_join_scheduler(fibers.data(), fibers.size());
    for (auto& t : threads) {
        tsan_destroy(t->fiber);
        free_stack(t->fiber.stack);
    }
    threads.clear();
}

const char* launch(simt_launch_call* call) {
    now.error.clear();
    call->counters = {};
    now.kernel = find(call->kernel);
    if (now.kernel == nullptr) {
        now.error = "launch: no kernel " + std::string(call->kernel) + " in this library";
        return now.error.c_str();
    }
    now.call = call;
    const std::string refused = refusal(*call);
    if (!refused.empty()) {
        now.error = "launch: kernel " + std::string(now.kernel->name) + ": " + refused;
        return now.error.c_str();
    }
    running.block_size = {call->block[0], call->block[1], call->block[2]};
    running.grid_size = {call->grid[0], call->grid[1], call->grid[2]};
    now.block_threads = call->block[0] * call->block[1] * call->block[2];
    now.random = {call->seed};
    now.at_grid_barrier = 0;
    now.in_fiber = false;
    traffic_begin(*call, shared_begin, shared_end);
    run_guarded(run_grid);
    traffic_end(call->counters);
    if (with_tsan) end_tsan_threads();
    else if (!now.error.empty())
        for (auto& t : threads) clean_stack(t->fiber.stack);
    for (char* memory : now.dynamic_shared_of_blocks) free(memory);
    now.dynamic_shared_of_blocks.clear();
    return now.error.empty() ? nullptr : now.error.c_str();
}

}  // namespace
}  // namespace simt

// ------------------------------------------------------------------------------------------------
// The C interface

#define SIMT_EXPORT extern "C" __attribute__((visibility("default")))

SIMT_EXPORT int simt_api_version() { return SIMT_API_VERSION; }
SIMT_EXPORT int simt_num_kernels() { return simt::num_kernels; }
SIMT_EXPORT const char* simt_kernel_name(int index) { return simt::kernels[index].name; }
SIMT_EXPORT const char* simt_kernel_signature(int index) { return simt::kernels[index].signature; }
SIMT_EXPORT int simt_kernel_max_threads(int index) { return static_cast<int>(simt::kernels[index].max_threads); }

SIMT_EXPORT int simt_kernel_parameter(int index, int parameter, uint32_t* size, uint32_t* alignment) {
    const simt::Parameter* parameters = simt::kernels[index].parameters;
    for (int i = 0; i < parameter; ++i)
        if (parameters[i].size == 0) return 0;
    *size = static_cast<uint32_t>(parameters[parameter].size);
    *alignment = static_cast<uint32_t>(parameters[parameter].alignment);
    return *size != 0;
}

SIMT_EXPORT const char* simt_launch(simt_launch_call* call) {
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    return simt::launch(call);
}
