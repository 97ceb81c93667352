// The state of a device, of this folder alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "device.h"
#include "planted.h"

namespace hopfuse::device {

constexpr size_t ALIGNMENT = 256;               // of arrays in one allocation
constexpr size_t GRANULARITY = 512;             // of device memory
constexpr size_t MOST_STAGED = 4 << 20;         // the most that an upload copies through pinned memory
constexpr size_t MOST_READ_PINNED = 4 << 20;    // the most that a read to pageable memory copies through pinned memory
constexpr size_t MOST_PINNED = 1 << 30;         // the most that results are pinned
constexpr size_t MOST_IDLE_PINNED = 256 << 20;  // free pinned memory that is kept
constexpr size_t FREE_SHARED = 48 << 10;        // shared memory of a block that needs no opting in

constexpr size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

inline CUdeviceptr address_of(const void* pointer) {
    return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pointer));
}
inline void* pointer_to(CUdeviceptr address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

// Bytes in use, below a cap.
class Account {
public:
    size_t cap = SIZE_MAX;
    bool add(size_t bytes) noexcept;
    void remove(size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
    size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
    size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
    void reset_peak() noexcept { peak_.store(used(), std::memory_order_relaxed); }

private:
    std::atomic<size_t> used_{0}, peak_{0};
};

// Free blocks of a device without memory pools. A block may be used again on any stream, which waits for the event that was
// recorded when it became free.
class FreeBlocks {
public:
    struct Block {
        CUdeviceptr address;
        size_t bytes;
        CUevent over;
    };
    std::optional<Block> take(size_t bytes);
    void give(const Block& block);
    std::vector<Block> take_all();
    size_t bytes();

private:
    std::mutex mutex_;
    std::multimap<size_t, Block> blocks_;
    size_t bytes_ = 0;
};

// Pinned memory through which a queue uploads: a ring whose parts are used again once their copies are over. It belongs to one queue
// at a time.
class Staging {
public:
    Staging(const Driver& driver, std::byte* memory) : driver_(driver), memory_(memory) {}
    ~Staging();
    // The next part of the ring; the caller fills it and queues one copy of it on the stream.
    std::byte* take(size_t bytes, CUstream stream);
    // All copies of this queue are over.
    void waited() noexcept;
    // The queue ends: what it copied is waited for before it is overwritten.
    void release(CUstream stream);
    std::byte* memory() const { return memory_; }

private:
    struct Part {
        size_t begin, end;
        CUevent over;
    };
    void close(CUstream stream);
    void wait_for(size_t begin, size_t end);

    const Driver& driver_;
    std::byte* memory_;
    size_t next_ = 0;
    std::deque<Part> parts_;       // in the order of their copies, each with an event
    size_t open_ = 0;              // begin of what this queue has copied since the last event; it ends at next_
    size_t own_ = 0;               // parts at the end of parts_ that this queue has closed
    std::vector<CUevent> events_;  // idle ones
};

// A kernel of a loaded unit.
struct Function {
    std::string unit, name;
    CUfunction handle = nullptr;
    size_t most_shared = 0;          // bytes of dynamic shared memory that it can opt in to
    std::atomic<size_t> allowed{0};  // bytes of dynamic shared memory that it may be launched with
    Function* next = nullptr;

    struct Resident {
        int threads;
        size_t shared;
        int64_t blocks;
    };
    std::mutex mutex;
    std::vector<Resident> residents;
};

struct Device::State {
    State(const Driver& driver, int ordinal, Code code);
    ~State();

    // ---- Errors
    [[noreturn]] void fail(CUresult result, const std::string& what);
    // `what` is text, or a function that makes it on failure.
    template <class What>
    void check(CUresult result, const What& what) {
        if (result == CUDA_SUCCESS) [[likely]]
            return;
        if constexpr (std::is_invocable_v<What>) fail(result, what());
        else fail(result, what);
    }
    void throw_if_broken() const {
        if (is_broken.load(std::memory_order_acquire)) [[unlikely]]
            throw *broken;
    }

    // ---- Memory
    // These need the context to be current. `block` becomes the size of what is taken, at least `bytes`; no stream: fixed memory.
    CUresult try_take(size_t bytes, const Stream& stream, CUdeviceptr& address, size_t& block);
    void take_or_throw(size_t bytes, const Stream* stream, CUdeviceptr& address, size_t& block);
    void give(CUdeviceptr address, size_t block, const Stream& stream, std::thread::id taken_by);
    Owner take(Device& device, size_t bytes, const Stream& stream);
    void run_collector();
    size_t free_bytes();
    void trim();
    void trim_pinned(size_t keep);
    CUevent take_event();
    void give_event(CUevent event);
    void order(CUstream first, CUstream second);
    Staging* take_staging();
    void give_staging(Staging* staging, CUstream stream) noexcept;

    // ---- Kernels
    Function* find(std::string_view unit, std::string_view name) const noexcept;
    Function& function(Device& device, std::string_view unit, std::string_view name, bool may_load);
    void allow_shared(Function& function, size_t shared);
    int64_t resident_blocks(Device& device, Function& function, int threads, size_t shared);
    void forget_residents();  // what runs at once has changed: ask again

    // ---- Times of this thread's launches
    bool is_timed() const noexcept;
    CUevent time_event(CUstream stream);
    void time_launch(std::string_view kernel, CUevent begin, CUstream stream);

    const Driver& driver;
    CUdevice number = 0;
    CUcontext context = nullptr;
    Properties properties{};
    bool is_counting = false;
    int most_shared = 0;  // bytes of shared memory of a block that opted in
    std::atomic<int> multiprocessors{0};

    std::atomic<bool> is_broken{false};
    std::optional<DriverError> broken;  // set once, before is_broken
    std::mutex broken_mutex;

    CUmemoryPool pool = nullptr;
    FreeBlocks free_blocks;  // without pools
    size_t most_kept = 0;
    bool makes_codes = true;   // of corpora
    bool keeps_apart = false;  // every array is an allocation of its own, of no pool, for tools that check memory
    // What is allocated for this many bytes.
    size_t allocated(size_t nbytes) const {
        const size_t least = std::max<size_t>(1, nbytes);
        return keeps_apart ? least : rounded(least, GRANULARITY);
    }
    Account account;
    std::atomic<int> captures{0};  // under way on this device
    std::mutex collect_mutex;
    std::function<void()> collect;

    std::mutex pinned_mutex;
    std::array<std::vector<std::byte*>, 64> idle_pinned;  // by the logarithm of their size
    size_t idle_pinned_bytes = 0;

    std::mutex idle_mutex;
    std::vector<CUevent> idle_events;
    std::vector<CUstream> idle_streams;
    std::vector<std::unique_ptr<Staging>> stagings;
    std::vector<Staging*> idle_stagings;

    struct Unit {
        bool is_loading = false;
        CUmodule module = nullptr;
        std::string origin;
    };
    Code code;
    std::array<std::atomic<Function*>, 512> functions{};
    mutable std::mutex units_mutex;
    std::condition_variable units_changed;
    std::map<std::string, Unit, std::less<>> units;

private:
    CUmodule module_of(const std::string& unit);
    CUmodule load(const Image& image, const std::string& unit, std::string& origin);
};

}  // namespace hopfuse::device
