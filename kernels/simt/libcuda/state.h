// What the machine consists of: devices, contexts and their objects, queued work. Everything is under one lock, which `call`
// takes; functions without a lock of their own say so by not being entry points.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api.h"
#include "driver_types.h"
#include "entry_points.h"

namespace simt::driver {

using namespace hopfuse::driver;

enum class Entry : int {
#define SIMT_ENTRY(name, asked, since, parameters) name,
    SIMT_ENTRY_POINTS(SIMT_ENTRY)
#undef SIMT_ENTRY
        count
};

extern "C" {
#define SIMT_ENTRY(name, asked, since, parameters) __attribute__((visibility("default"))) CUresult name parameters;
SIMT_ENTRY_POINTS(SIMT_ENTRY)
#undef SIMT_ENTRY
}

constexpr int num_devices = 8;

struct Allocation;
struct Context;
struct Op;
struct Pool;
struct Queue;
struct Capture;

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// ------------------------------------------------------------------------------------------------
// Work

// A part of an allocation that work uses. A kernel's pointer reaches to the allocation's end, and whether the kernel wrote there
// is known when it has run.
struct Touch {
    std::shared_ptr<Allocation> allocation;
    uint64_t begin, size;
    enum Use : int { reads, writes, may_write } use;
};

// Something to run on a device, once or in every replay of a graph.
struct Work {
    std::vector<Touch> touches;
    virtual ~Work() = default;
    virtual CUgraphNodeType type() const = 0;
    virtual const char* name() const = 0;  // that stays
    virtual void run(Op& op) = 0;
    // Of work in a graph, which may have become impossible since it was recorded.
    virtual CUresult check_again(const Context&) const { return CUDA_SUCCESS; }
};

// For each queue, by number, how many of its operations are known to have ended.
using Clock = std::vector<std::pair<uint32_t, uint32_t>>;
uint32_t count_of(const Clock& clock, uint32_t queue);
void merge(Clock& clock, const Clock& other);
void advance(Clock& clock, uint32_t queue, uint32_t count);

// Queued work, and the operations that must end before it.
struct Op : std::enable_shared_from_this<Op> {
    std::shared_ptr<Queue> queue;
    uint32_t number = 0;  // in its queue, from 1
    std::shared_ptr<Work> work;
    const char* name = "";
    std::vector<std::shared_ptr<Op>> before;
    Clock clock;
    bool done = false;
    double seconds = 0;  // when it ended, of events

    bool is_after(const Op& other) const;
};
using OpPtr = std::shared_ptr<Op>;

// The work of a stream, in its order.
struct Queue {
    uint32_t number = 0, length = 0;
    Context* context = nullptr;
    bool is_blocking = true, is_default = false;
    bool is_dropped = false, is_retired = false;  // its stream is destroyed, and all its work is known to have ended
    OpPtr last;
    std::vector<OpPtr> waits;
    std::vector<std::shared_ptr<Allocation>> unsettled;  // allocations that its kernels may have written
    std::shared_ptr<Capture> capture;
    // Where the next captured work comes after, in the capture's graph.
    std::vector<int> tips;
};
using QueuePtr = std::shared_ptr<Queue>;

// ------------------------------------------------------------------------------------------------
// Memory

struct Access {
    uint64_t begin, end;  // in the allocation
    bool writes;
    OpPtr op;
};

struct Allocation {
    uint64_t begin = 0, size = 0;
    int device = 0;
    Context* context = nullptr;
    std::shared_ptr<Pool> pool;
    bool is_free = false;   // the host gave it back
    bool is_gone = false;   // and its memory may be another allocation's
    bool of_graph = false;  // allocated in a capture
    std::vector<Access> accesses;
    std::vector<uint64_t> hashes;  // of each chunk; 0 is unknown
    // Kernels of one queue that may have written behind a place, since the hashes were taken: the last one.
    OpPtr writer;
    uint64_t writer_begin = 0;
};
using AllocationPtr = std::shared_ptr<Allocation>;

// Memory of a pool that was freed and not returned to the device.
struct CachedBytes {
    uint64_t size;
    OpPtr freed_by;
};

// Page-locked memory of the host. When it is freed it is overwritten, and stays for a while, so that a late copy is seen.
struct Pinned {
    uintptr_t begin = 0;
    uint64_t size = 0;
    Context* context = nullptr;
    int device = 0;
    bool is_free = false;
    ~Pinned();
};
using PinnedPtr = std::shared_ptr<Pinned>;

// ------------------------------------------------------------------------------------------------
// Objects with handles

enum class Kind : int { context, stream, event, module, function, pool, graph, graph_exec, node };
const char* name_of(Kind kind);

struct Object {
    Kind kind;
    uint64_t handle = 0;
    Context* context = nullptr;
    explicit Object(Kind kind) : kind(kind) {}
    virtual ~Object() = default;
};

struct Context : Object {
    int device = 0, retained = 0;
    CUresult error = CUDA_SUCCESS;  // sticky
    QueuePtr legacy;
    std::map<uint64_t, QueuePtr> of_threads;  // their default streams
    std::vector<QueuePtr> queues;
    std::vector<std::shared_ptr<Pool>> pools;
    bool is_destroyed = false;
    Context() : Object(Kind::context) {}
};

struct Stream : Object {
    QueuePtr queue;
    int priority = 0;
    Stream() : Object(Kind::stream) {}
};

struct Event : Object {
    OpPtr op;  // of the last record
    std::shared_ptr<Capture> capture;
    std::vector<int> tips;
    bool has_time = true;
    Event() : Object(Kind::event) {}
};

struct Pool : Object {
    int device = 0;
    uint64_t threshold = 0, used = 0, used_high = 0, reserved = 0, reserved_high = 0;
    uint64_t most = 0;  // bytes, or no limit
    int follow_events = 1, opportunistic = 1, internal_dependencies = 1;
    bool is_destroyed = false;
    std::vector<CachedBytes> cached;
    Pool() : Object(Kind::pool) {}
};

// The environment variable HOPFUSE_SIMT_MEMORY, in bytes, or so much that no test fills it: fresh memory is written.
inline uint64_t memory_of_device() {
    const char* const given = std::getenv("HOPFUSE_SIMT_MEMORY");
    return given == nullptr ? uint64_t{1} << 40 : std::strtoull(given, nullptr, 10);
}

struct Device {
    uint64_t memory = memory_of_device(), used = 0;
    int order = SIMT_FORWARD, mma = SIMT_H100, capability = 90, blocks_at_once = 2, cooperative = 1,
        multiprocessors = 1;
    int64_t l2_bytes = int64_t{1} << 26;
    int memory_clock = 1000, bus_width = 64, clock = 1000, pools = 1, ecc = 1, compute_mode = 0;
    uint64_t seed = 0;
    std::string name = "SIMT emulator";
    std::shared_ptr<Context> primary;
    // Entries into allocations and into addresses: arena.cpp.
    uint64_t cursor = 0, used_end = 0, live_bytes = 0;
    std::map<uint64_t, AllocationPtr> allocations;  // by address, with the recently freed ones
    std::deque<AllocationPtr> freed;
};

// ------------------------------------------------------------------------------------------------
// The machine

struct LogEntry {
    int device;
    const char *kind, *name;
    uint64_t size;
};

struct LaunchEntry {
    int device;
    const char* kernel;
    uint32_t grid[3], block[3];
    simt_counters counters;
};

struct Failure {
    int skip, count;
    CUresult code;
};

struct Machine {
    std::mutex lock;
    bool is_initialised = false;
    bool is_forked = false;
    bool noop = false;
    bool with_protection_keys = true;  // if the processor has them
    int driver_version = 13000;
    int visible = num_devices;
    std::array<Device, num_devices> devices;
    uint64_t next_handle = 0x5a0000001000u;
    std::unordered_map<uint64_t, std::shared_ptr<Object>> objects;
    std::map<uintptr_t, PinnedPtr> pinned;  // by address, freed ones included
    std::deque<PinnedPtr> freed_pinned;
    uint64_t freed_pinned_bytes = 0;
    uint32_t next_queue = 1;
    Clock known;  // what the host has waited for
    std::vector<std::shared_ptr<Capture>> captures;
    std::array<uint64_t, static_cast<size_t>(Entry::count)> calls = {};
    std::array<std::vector<Failure>, static_cast<size_t>(Entry::count)> failures;
    std::deque<LogEntry> events;
    std::deque<LaunchEntry> launches;
    std::deque<std::string> findings;
    std::string report;  // of the last failed kernel
    uint64_t graph_allocations = 0;
};
extern Machine& machine;                  // never destroyed, as programs call the driver while they end
constexpr size_t most_entries = 1 << 20;  // of a log; older ones are lost

// Of the calling thread.
struct ThreadState {
    std::vector<std::shared_ptr<Context>> current;
    CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    uint64_t number = 0;
    // Its calls that queue work or wait for it, without copies of pageable memory.
    std::shared_ptr<uint64_t> calls = std::make_shared<uint64_t>(0);
};
ThreadState& this_thread();

// Something that a device would refuse later, silently do wrong, or only sometimes get right.
void find(const char* kind, const std::string& what);
CUresult refuse(CUresult code, const char* kind, const std::string& what);
void log(const Context& context, const char* kind, uint64_t size, const char* name = "");
// The same text, at an address that stays.
const char* kept(const std::string& text);

const char* name_of(Entry entry);
const char* name_of(CUresult code);
Entry running_entry();

// ------------------------------------------------------------------------------------------------
// How an entry point begins

enum class Needs : int { nothing, initialised, context, context_even_if_failed };

// A call has the machine to itself; kernels that ran in it opened device memory, which is closed at its end.
struct Locked {
    const std::lock_guard<std::mutex> lock{machine.lock};
    ~Locked();
};

struct Begin {
    std::optional<Locked> lock;
    CUresult code = CUDA_SUCCESS;
    Context* context = nullptr;
    Begin(Entry entry, Needs needs);
};

#define SIMT_BEGIN(entry, needs)                       \
    const Begin begin(Entry::entry, needs);            \
    if (begin.code != CUDA_SUCCESS) return begin.code; \
    [[maybe_unused]] Context* const context = begin.context

#define SIMT_TRY(expression)                     \
    do {                                         \
        const CUresult tried = (expression);     \
        if (tried != CUDA_SUCCESS) return tried; \
    } while (false)

// ------------------------------------------------------------------------------------------------
// Handles

uint64_t register_object(std::shared_ptr<Object> object, Context* context);
void forget(uint64_t handle);

// The object of a handle; null, with a finding, if there is none of this kind.
std::shared_ptr<Object> look_up(uint64_t handle, Kind kind);

template <class T, class Handle>
std::shared_ptr<T> find_object(Handle handle, Kind kind) {
    return std::static_pointer_cast<T>(look_up(reinterpret_cast<uint64_t>(handle), kind));
}
template <class Handle>
Handle as_handle(uint64_t value) {
    return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
}

// An object of the current context, or why not.
template <class T, class Handle>
CUresult get(std::shared_ptr<T>& out, Handle handle, Kind kind, const Context* context) {
    out = find_object<T>(handle, kind);
    if (out == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (context != nullptr && out->context != context)
        return refuse(CUDA_ERROR_INVALID_CONTEXT, "context",
                      std::string(name_of(kind)) + " of another context than the current one");
    return CUDA_SUCCESS;
}

}  // namespace simt::driver
