// A device: its context, memory, kernels and recordings, over the driver's entry points (driver.h). No CUDA header or library is
// needed to build this; the tests' driver is the emulator (kernels/simt).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "array.h"
#include "driver.h"
#include "error.h"
#include "kernel.h"

namespace hopfuse::device {

// Code that a driver loads, and where it comes from.
struct Image {
    std::string bytes;
    std::string origin;
    // What to load if the driver refuses this, for the reason given: code of a newer toolkit, or of other devices.
    std::function<Image(const std::string& why)> otherwise = nullptr;
};

// A stream of the device. 0 is the legacy default stream, 1 and 2 are CUDA's own names of it and of the thread's default stream.
struct Stream {
    CUstream handle = nullptr;
    Owner owner;  // keeps a caller's stream alive, also for memory that is freed on it later
};

struct LaunchTime {
    std::string kernel;
    double seconds;
};

// Sizes of units of work. Results do not depend on them; tests make them small to reach every boundary.
struct Sizes {
    // Dense search and selection (selection.h): a tile has at least tile_rows rows, or as many as give tile_scores scores;
    // queries searched together; queries up to which all rows are scored canonically at once; a tile of a query is split among
    // blocks of at least split_rows rows, at most most_splits for one query; the most candidates of a query that a block keeps in
    // shared memory; keys sorted in shared memory, a power of two, and in device memory at a time.
    int64_t tile_rows = 1 << 14, tile_scores = 1 << 23, batch = 512, scored_at_once = 4;
    int64_t split_rows = 1 << 10, most_splits = 264;
    int64_t widest = 1 << 11, sort_chunk = 1 << 12, sort_keys = 1 << 25;
    int64_t split_blocks = 0;  // also of a scan of ppr_topk; 0: eight times the multiprocessors
    // A corpus has codes if its vectors take this many bytes; smaller ones are read sooner than the launches of a scan take. The
    // rows that a scan keeps for a query: a power of two, at least 32.
    int64_t coded_bytes = int64_t{64} << 20, scanned_rows = 1 << 12;
    // Items of a query that a block sums or weighs: passages of similarity_weights, nodes of node weights.
    int64_t part = 4096;
    // The most entries of a query that fuse sorts in shared memory, a power of two.
    int64_t shared_entries = 2048;
    // Device memory for sorting long lists (fuse) and couplings (ising), bytes.
    int64_t workspace = 256 << 20;
    // Columns for entities of hits in a recording, whose width is fixed.
    int64_t most_places = 1024;
    // The most lanes of a walk's block: 4, 8, 16 or 32; 0: chosen by bytes.
    int64_t most_lanes = 0;
};

class Queue;
class Staging;
class Tape;

// One device of this process, for all threads. Its primary context is retained and never reset.
class Device : public std::enable_shared_from_this<Device> {
public:
    // `code` returns the image of a unit of kernels/cuda; it is called once for each unit, at the first launch of one of its
    // kernels outside a recording, with no lock held that it could need.
    using Code = std::function<Image(const std::string& unit)>;

    static std::shared_ptr<Device> open(const Driver& driver, int ordinal, Code code);
    ~Device();

    struct Properties {
        int ordinal;
        std::string name, uuid;
        int capability;  // 90 for 9.0
        int driver_version;
        int multiprocessors;
        size_t total_bytes, l2_bytes;
        double l2_speedup;  // the bandwidth of the L2 cache over that of the memory, at least 1
        bool has_pools, has_cooperative;
        bool is_exclusive;  // whether one process at a time may use it; under MPS, several may nevertheless
    };
    // Of a device that need not be open.
    static Properties properties_of(const Driver& driver, int ordinal);
    // A device on which nothing runs: it only counts memory, for estimates. Every queue of it is `fixed`. Workspaces and codes are those
    // of a device with these properties, whose memory nobody else uses; without any, of a device on which they are largest.
    static std::shared_ptr<Device> counting(const std::optional<Properties>& like = std::nullopt);
    const Properties& properties() const;
    const Driver& driver() const;
    CUcontext context() const;
    bool is_counting() const;

    // Whether launches may be cooperative; the self-test clears it if they give other results.
    std::atomic<bool> cooperative{true};
    Sizes sizes;

    // ---- Memory. Queues allocate from a pool of this library's own. It keeps at most an eighth of the device's memory for later
    // calls, and less after trim(). The environment variable HOPFUSE_CUDA_MEMORY_LIMIT caps what is in use: bytes, or a number
    // with KiB, MiB or GiB.
    size_t free_bytes();  // that an allocation can still get: of the device, of this pool, below its cap
    void require(size_t bytes, const std::string& what);  // throws NoRoom
    void trim();                                          // gives cached memory back to the device
    // What an allocation does that finds no memory, before it tries once more: free what nobody uses any more. It is called on any
    // thread, without a lock held.
    void collect_with(std::function<void()> collect);
    bool makes_codes() const;  // of corpora, unless the environment variable HOPFUSE_CUDA_CODES is never
    // Memory of its own, not of the pool, freed once all work of the device is over: for what is resident and for recordings.
    Owner fixed_memory(size_t bytes);
    template <class T>
    Array<T> fixed(size_t size) {
        const Owner owner = fixed_memory(size * sizeof(T));
        return Array<T>(owner, static_cast<T*>(const_cast<void*>(owner.get())), size);
    }
    // Pinned host memory of at least this size; it goes back to a list of free blocks when it is dropped.
    std::shared_ptr<std::byte[]> pinned(size_t bytes);
    // Bytes in use now, in units of 512 for each allocation, and the most since the last call of reset_peak().
    size_t used_bytes() const;
    size_t peak_bytes() const;
    void reset_peak();

    // ---- Kernels
    CUfunction function(std::string_view unit, std::string_view name, size_t shared);
    int64_t resident_blocks(std::string_view unit, std::string_view name, int threads, size_t shared);
    std::vector<std::pair<std::string, std::string>> origins() const;  // of the loaded units

    // Times the launches of this thread's queues until read_times().
    void start_timing();
    std::vector<LaunchTime> read_times();

    // A stream from a list of idle ones, to which it returns when it is dropped: later work on it comes after.
    Stream own_stream();

    struct State;  // of this folder alone: state.h
    State& state() { return *state_; }

private:
    explicit Device(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Makes the device's context current on this thread, and restores the caller's at the end. Captures of other libraries in other
// threads do not forbid its calls meanwhile, nor are broken by them.
class Current {
public:
    explicit Current(Device& device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

private:
    const Device::State* state_;
    const Device::State* outer_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// What a call looks at before each launch; throws Cancelled.
using Checkpoint = void (*)(void* context);

// Work queued in order on one stream of a device. Not for several threads at once. The device's context is current on this thread
// while a queue exists, and the caller's is restored after it.
class Queue {
public:
    Queue(std::shared_ptr<Device> device, Stream stream, Tape* tape = nullptr);
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    Device& device() { return *device_; }
    Sizes& sizes() { return device_->sizes; }
    const Stream& stream() const { return stream_; }
    // Whether results cannot be read to make decisions: in the runs of a recording, and on a counting device.
    bool fixed() const;
    // Keeps something alive as long as the recording that is being made, if one is: what its kernels read.
    void keep(Owner owner);
    // Lets later work of this queue wait for what is queued on another stream now, or the other way round; the host does not wait.
    void after(const Stream& other);
    void before(const Stream& other);
    void check_with(Checkpoint checkpoint, void* context);

    // ---- Memory
    template <class T>
    Array<T> empty(size_t size) {
        return std::get<0>(arrays<T>(size));
    }
    // Several arrays in one allocation, each aligned to 256 bytes: auto [a, b] = queue.arrays<int64_t, float>(n, m).
    template <class... T, class... Sizes>
    std::tuple<Array<T>...> arrays(Sizes... sizes) {
        static_assert(sizeof...(T) == sizeof...(Sizes));
        const size_t nbytes[] = {sizeof(T) * static_cast<size_t>(sizes)...};
        void* there[sizeof...(T)];
        Owner owners[sizeof...(T)];
        allocate(nbytes, there, owners);
        size_t at = 0;
        // Braces: evaluated from left to right.
        return std::tuple<Array<T>...>{next_array<T>(owners, there, at, static_cast<size_t>(sizes))...};
    }
    // The same of zeros, in one memset.
    template <class... T, class... Sizes>
    std::tuple<Array<T>...> zero_arrays(Sizes... sizes) {
        const std::tuple<Array<T>...> made = arrays<T...>(sizes...);
        std::apply(
            [&](const auto&... each) {
                void* const data[] = {each.data()...};
                const size_t nbytes[] = {each.nbytes()...};
                clear_arrays(data, nbytes);
            },
            made);
        return made;
    }
    template <class T>
    Array<T> zeros(size_t size) {
        return std::get<0>(zero_arrays<T>(size));
    }

    // Copies host arrays, which have been read when the call returns, in one copy if they are small. In a recording they become
    // constants: copied in its first run, and compared in its second.
    template <class... T>
    std::tuple<Array<T>...> upload(std::span<const T>... given) {
        const void* const data[] = {given.data()...};
        const size_t nbytes[] = {given.size_bytes()...};
        void* there[sizeof...(T)];
        Owner owners[sizeof...(T)];
        upload_bytes(data, nbytes, there, owners);
        size_t at = 0;
        return std::tuple<Array<T>...>{next_array<T>(owners, there, at, given.size())...};
    }
    template <class T>
    Array<T> upload(const std::vector<T>& given) {
        return std::get<0>(upload(std::span<const T>(given)));
    }
    template <class T>
    Array<T> upload_one(T value) {
        return std::get<0>(upload(std::span<const T>(&value, 1)));
    }
    // The same for a number of arrays known at run time; `there` and `owners` receive what was made.
    void upload_bytes(std::span<const void* const> data, std::span<const size_t> nbytes, std::span<void*> there,
                      std::span<Owner> owners);

    // Reads arrays, waiting for the work before; those of one allocation in one copy. Throws NotRecordable if `fixed`.
    template <class... T>
    auto read(const Array<T>&... arrays) {
        std::tuple<std::vector<std::remove_const_t<T>>...> found{std::vector<std::remove_const_t<T>>(arrays.size())...};
        std::apply(
            [&](auto&... host) {
                const void* const from[] = {arrays.data()...};
                void* const to[] = {host.data()...};
                const size_t nbytes[] = {arrays.nbytes()...};
                const Owner* const owners[] = {&arrays.owner()...};
                read_bytes(from, to, nbytes, owners);
            },
            found);
        if constexpr (sizeof...(T) == 1) return std::move(std::get<0>(found));
        else return found;
    }
    // `owners` tell which arrays are of one allocation; without them, each is copied by itself.
    void read_bytes(std::span<const void* const> from, std::span<void* const> to, std::span<const size_t> nbytes,
                    std::span<const Owner* const> owners = {});
    // Queues a copy of an array to pinned memory, which is there after a later read or wait. Null if it is too large to be pinned.
    std::shared_ptr<std::byte[]> begin_read(const void* from, size_t nbytes);
    // Reads arrays into one block of pinned memory, waiting; returns the block and the offset of each array in it. What is too
    // large to be pinned comes in pageable memory.
    std::shared_ptr<std::byte[]> read_pinned(std::span<const void* const> from, std::span<const size_t> nbytes,
                                             std::span<size_t> begins, std::span<const Owner* const> owners = {});

    // All of `to` from as many elements elsewhere on the device.
    template <class T>
    void copy(const Array<T>& to, const std::type_identity_t<T>* from) {
        copy_bytes(to.data(), from, to.nbytes());
    }
    void copy_bytes(void* to, const void* from, size_t nbytes);
    // Row i of `to` becomes row rows[i] of `from`, and the other way round; rows of `row` elements.
    template <class T>
    Array<T> take_rows(const Array<T>& from, size_t row, std::span<const int64_t> rows) {
        Array<T> taken = empty<T>(row * rows.size());
        for (size_t i = 0; i < rows.size(); ++i)
            copy_bytes(taken.data() + i * row, from.data() + static_cast<size_t>(rows[i]) * row, row * sizeof(T));
        return taken;
    }
    template <class T>
    void put_rows(const Array<T>& to, size_t row, std::span<const int64_t> rows, const Array<T>& from) {
        for (size_t i = 0; i < rows.size(); ++i)
            copy_bytes(to.data() + static_cast<size_t>(rows[i]) * row, from.data() + i * row, row * sizeof(T));
    }
    void wait();

    // ---- Work
    template <class... P>
    void launch(const Kernel<P...>& kernel, const Grid& grid, const std::type_identity_t<P>&... given) {
        const void* arguments[] = {static_cast<const void*>(&given)..., nullptr};
        launch_function(kernel.unit, kernel.name, grid, const_cast<void**>(arguments));
    }
    void launch_function(std::string_view unit, std::string_view name, const Grid& grid, void** arguments);
    template <class... P>
    int64_t resident_blocks(const Kernel<P...>& kernel, int threads, size_t shared) {
        return device_->resident_blocks(kernel.unit, kernel.name, threads, shared);
    }

    // Sets bytes of the device to 0.
    void clear(void* data, size_t nbytes);

    // Until the returned object is dropped, allocations and uploads are fixed memory outside any recording, and it waits at its
    // end, so that other streams may read them. Throws NotRecordable in the second run of a recording.
    class Resident {
    public:
        explicit Resident(Queue& queue);
        ~Resident() noexcept(false);

    private:
        Queue& queue_;
        bool outer_;
        int exceptions_;
    };

private:
    bool is_recorded_run() const;
    Owner take(size_t nbytes);
    void clear_arrays(std::span<void* const> data, std::span<const size_t> nbytes);
    void synchronize(const char* what);
    void copy_up(char* base, std::span<const void* const> data, std::span<const size_t> nbytes,
                 std::span<const size_t> begins, size_t total);
    void allocate(std::span<const size_t> nbytes, std::span<void*> there, std::span<Owner> owners);
    template <class T>
    static Array<T> next_array(const Owner* owners, void* const* there, size_t& at, size_t size) {
        const size_t own = at++;
        return Array<T>(owners[own], static_cast<T*>(there[own]), size);
    }

    std::shared_ptr<Device> device_;
    Current current_;
    Stream stream_;
    Tape* tape_;
    bool resident_ = false;
    Staging* staging_ = nullptr;
    std::vector<std::shared_ptr<std::byte[]>> on_way_;  // pinned memory of copies that may not be complete
    Checkpoint checkpoint_ = nullptr;
    void* checkpoint_context_ = nullptr;
    friend class Resident;
};

}  // namespace hopfuse::device
