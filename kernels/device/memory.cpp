// Device memory, pinned memory and staging.
#include <algorithm>
#include <cstring>

#include "state.h"

namespace hopfuse::device {

bool Account::add(size_t bytes) noexcept {
    size_t before = used_.load(std::memory_order_relaxed);
    do {
        if (bytes > cap || before > cap - bytes) return false;
    } while (!used_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    const size_t now = before + bytes;
    size_t most = peak_.load(std::memory_order_relaxed);
    while (most < now && !peak_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    return true;
}

std::optional<FreeBlocks::Block> FreeBlocks::take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.lower_bound(bytes);
    if (found == blocks_.end() || found->first > 2 * bytes)
        return std::nullopt;  // a large block is not used up by a small array
    const Block block = found->second;
    bytes_ -= block.bytes;
    blocks_.erase(found);
    return block;
}

void FreeBlocks::give(const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace(block.bytes, block);
    bytes_ += block.bytes;
}

std::vector<FreeBlocks::Block> FreeBlocks::take_all() {
    const std::lock_guard lock(mutex_);
    std::vector<Block> taken;
    for (const auto& [bytes, block] : blocks_) taken.push_back(block);
    blocks_.clear();
    bytes_ = 0;
    return taken;
}

size_t FreeBlocks::bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

// ---- Staging

Staging::~Staging() {
    for (const Part& part : parts_) driver_.cuEventDestroy(part.over);
    for (const CUevent event : events_) driver_.cuEventDestroy(event);
}

std::byte* Staging::take(size_t bytes, CUstream stream) {
    const size_t size = rounded(bytes, ALIGNMENT);
    const bool wraps = next_ + size > MOST_STAGED;
    if (wraps || next_ - open_ >= MOST_STAGED / 4) close(stream);
    if (wraps) {
        wait_for(next_, MOST_STAGED);  // what is skipped, so that the oldest part is always the next one in the ring
        next_ = open_ = 0;
    }
    wait_for(next_, next_ + size);
    std::byte* const part = memory_ + next_;
    next_ += size;
    return part;
}

void Staging::close(CUstream stream) {
    if (open_ == next_) return;
    CUevent over = nullptr;
    if (!events_.empty()) {
        over = events_.back();
        events_.pop_back();
    } else {
        device::check(driver_, driver_.cuEventCreate(&over, CU_EVENT_DISABLE_TIMING), "an upload");
    }
    parts_.push_back({open_, next_, over});
    ++own_;
    open_ = next_;
    device::check(driver_, driver_.cuEventRecord(over, stream), "an upload");
}

void Staging::wait_for(size_t begin, size_t end) {
    while (!parts_.empty() && parts_.front().begin < end && begin < parts_.front().end) {
        const Part part = parts_.front();
        const bool waits = HOPFUSE_PLANT(8, true, false) && HOPFUSE_PLANT(9, true, parts_.size() == own_ + 1);
        if (waits) device::check(driver_, driver_.cuEventSynchronize(part.over), "an upload");
        events_.push_back(part.over);
        parts_.pop_front();
    }
    own_ = std::min(own_, parts_.size());
}

void Staging::waited() noexcept {
    for (; own_; --own_) {
        events_.push_back(parts_.back().over);
        parts_.pop_back();
    }
    open_ = next_;
}

void Staging::release(CUstream stream) {
    if (HOPFUSE_PLANT(41, true, false)) close(stream);
    own_ = 0;
}

Staging* Device::State::take_staging() {
    {
        const std::lock_guard lock(idle_mutex);
        if (!idle_stagings.empty()) {
            Staging* const idle = idle_stagings.back();
            if (HOPFUSE_PLANT(31, true, false)) idle_stagings.pop_back();
            return idle;
        }
    }
    void* memory = nullptr;
    CUresult result = driver.cuMemHostAlloc(&memory, MOST_STAGED, host_alloc_portable);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        trim_pinned(0);
        result = driver.cuMemHostAlloc(&memory, MOST_STAGED, host_alloc_portable);
    }
    check(result, "an allocation of pinned memory");
    const std::lock_guard lock(idle_mutex);
    stagings.push_back(std::make_unique<Staging>(driver, static_cast<std::byte*>(memory)));
    return stagings.back().get();
}

void Device::State::give_staging(Staging* staging, CUstream stream) noexcept {
    try {
        staging->release(stream);
        const std::lock_guard lock(idle_mutex);
        idle_stagings.push_back(staging);
    } catch (...) {
        // The device has failed: the memory is not used again.
    }
}

// ---- Device memory

CUresult Device::State::try_take(size_t bytes, const Stream& stream, CUdeviceptr& address, size_t& block) {
    block = bytes;
    if (pool) return driver.cuMemAllocFromPoolAsync(&address, bytes, pool, stream.handle);
    if (const auto free = free_blocks.take(bytes)) {
        block = free->bytes;
        address = free->address;
        const CUresult result = HOPFUSE_PLANT(42, driver.cuStreamWaitEvent(stream.handle, free->over, 0), CUDA_SUCCESS);
        give_event(free->over);
        return result;
    }
    return driver.cuMemAlloc(&address, bytes);
}

void Device::State::take_or_throw(size_t bytes, const Stream* stream, CUdeviceptr& address, size_t& block) {
    const auto attempt = [&] {
        if (!account.add(HOPFUSE_PLANT(43, bytes, stream ? bytes : 0))) return CUDA_ERROR_OUT_OF_MEMORY;
        block = bytes;
        const CUresult result = stream ? try_take(bytes, *stream, address, block) : driver.cuMemAlloc(&address, bytes);
        if (result != CUDA_SUCCESS) account.remove(bytes);
        return result;
    };
    CUresult result = attempt();
    if (result == CUDA_ERROR_OUT_OF_MEMORY && HOPFUSE_PLANT(28, true, false)) {
        if (HOPFUSE_PLANT(29, true, false)) run_collector();
        // Memory that is freed in the order of a stream can be given back once the stream has come so far.
        if (stream) check(driver.cuStreamSynchronize(stream->handle), "waiting for memory");
        trim();
        result = attempt();
    }
    // To wait for the whole context would break a capture that is under way.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && HOPFUSE_PLANT(28, true, false) &&
        HOPFUSE_PLANT(44, captures.load() == 0, true) && driver.cuCtxSynchronize() == CUDA_SUCCESS) {
        trim();
        result = attempt();
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) throw NoMemory(bytes, free_bytes(), properties.total_bytes);
    check(result, [&] { return "an allocation of " + std::to_string(bytes) + " bytes"; });
}

void Device::State::run_collector() {
    std::function<void()> collector;
    {
        const std::lock_guard lock(collect_mutex);
        collector = collect;
    }
    if (collector) collector();
}

void Device::State::give(CUdeviceptr address, size_t block, const Stream& stream, std::thread::id taken_by) {
    // The default stream of a thread has another meaning on another thread.
    if (stream.handle == per_thread_stream() && HOPFUSE_PLANT(45, taken_by != std::this_thread::get_id(), false))
        driver.cuCtxSynchronize();
    if (pool) {
        driver.cuMemFreeAsync(address, stream.handle);
    } else if (free_blocks.bytes() + block <= most_kept) {
        const CUevent over = take_event();
        if (driver.cuEventRecord(over, stream.handle) == CUDA_SUCCESS) {
            free_blocks.give({address, block, over});
        } else {
            give_event(over);
            driver.cuMemFree(address);
        }
    } else {
        driver.cuMemFree(address);
    }
}

namespace {

// Memory of a stream, which is freed in its order.
struct StreamMemory {
    std::shared_ptr<Device> device;
    Stream stream;
    size_t bytes, block;
    std::thread::id taken_by;

    void operator()(const void* pointer) noexcept {
        if (!pointer || is_forked()) return;
        Device::State& state = device->state();
        state.account.remove(bytes);
        try {
            HOPFUSE_CURRENT(39, *device);
            state.give(address_of(pointer), block, stream, taken_by);
        } catch (...) {
            // The device has failed, and its memory is lost.
        }
    }
};

// Memory that is freed after all work of the device.
struct FixedMemory {
    std::shared_ptr<Device> device;
    size_t bytes;

    void operator()(const void* pointer) noexcept {
        if (!pointer || is_forked()) return;
        Device::State& state = device->state();
        state.account.remove(bytes);
        try {
            HOPFUSE_CURRENT(46, *device);
            state.driver.cuMemFree(address_of(pointer));
        } catch (...) {
            // As above.
        }
    }
};

struct PinnedMemory {
    std::shared_ptr<Device> device;
    size_t bytes;  // a power of two

    void operator()(std::byte* pointer) noexcept {
        if (!pointer || is_forked()) return;
        Device::State& state = device->state();
        try {
            {
                const std::lock_guard lock(state.pinned_mutex);
                if (state.idle_pinned_bytes + bytes <= MOST_IDLE_PINNED) {
                    state.idle_pinned[std::bit_width(bytes) - 1].push_back(pointer);
                    state.idle_pinned_bytes += bytes;
                    return;
                }
            }
            const Current current(*device);
            state.driver.cuMemFreeHost(pointer);
        } catch (...) {
            // As above.
        }
    }
};

}  // namespace

Owner Device::State::take(Device& device, size_t nbytes, const Stream& stream) {
    const size_t bytes = allocated(nbytes);
    CUdeviceptr address = 0;
    size_t block = 0;
    take_or_throw(bytes, &stream, address, block);
    const std::thread::id here = stream.handle == per_thread_stream() ? std::this_thread::get_id() : std::thread::id();
    return Owner(static_cast<const void*>(pointer_to(address)),
                 StreamMemory{device.shared_from_this(), HOPFUSE_PLANT(47, stream, (Stream{stream.handle, nullptr})),
                              bytes, block, here});
}

Owner Device::fixed_memory(size_t nbytes) {
    HOPFUSE_CURRENT(35, *this);
    const size_t bytes = state_->allocated(nbytes);
    CUdeviceptr address = 0;
    size_t block = 0;
    state_->take_or_throw(bytes, nullptr, address, block);
    return Owner(static_cast<const void*>(pointer_to(address)), FixedMemory{shared_from_this(), bytes});
}

std::shared_ptr<std::byte[]> Device::pinned(size_t nbytes) {
    const size_t bytes = std::bit_ceil(std::max<size_t>(4096, nbytes));
    std::byte* pointer = nullptr;
    {
        std::unique_lock lock(state_->pinned_mutex, std::defer_lock);
        if (HOPFUSE_PLANT(48, true, false)) lock.lock();
        std::vector<std::byte*>& idle = state_->idle_pinned[std::bit_width(bytes) - 1];
        if (!idle.empty()) {
            pointer = idle.back();
            idle.pop_back();
            state_->idle_pinned_bytes -= bytes;
        }
    }
    if (!pointer) {
        HOPFUSE_CURRENT(37, *this);
        void* made = nullptr;
        CUresult result = state_->driver.cuMemHostAlloc(&made, bytes, host_alloc_portable);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            state_->trim_pinned(0);
            result = state_->driver.cuMemHostAlloc(&made, bytes, host_alloc_portable);
        }
        state_->check(result, [&] { return "an allocation of " + std::to_string(bytes) + " bytes of pinned memory"; });
        pointer = static_cast<std::byte*>(made);
    }
    return std::shared_ptr<std::byte[]>(pointer, PinnedMemory{shared_from_this(), bytes});
}

size_t Device::State::free_bytes() {
    if (is_counting) return properties.total_bytes - std::min(properties.total_bytes, account.used());
    size_t free = 0, total = 0;
    check(driver.cuMemGetInfo(&free, &total), "asking for free memory");
    if (pool) {
        uint64_t reserved = 0, used = 0;
        check(driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
              "asking for free memory");
        check(driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), "asking for free memory");
        free += reserved > used ? reserved - used : 0;
    } else {
        free += free_blocks.bytes();
    }
    const size_t used = account.used();
    return std::min(free, account.cap > used ? account.cap - used : 0);
}

size_t Device::free_bytes() {
    HOPFUSE_CURRENT(40, *this);
    return state_->free_bytes();
}

void Device::require(size_t bytes, const std::string& what) {
    const Current current(*this);
    if (state_->is_counting || state_->free_bytes() >= bytes) return;
    state_->run_collector();
    if (const size_t free = state_->free_bytes(); free < bytes) throw NoRoom(what, bytes, free);
}

void Device::State::trim_pinned(size_t keep) {
    for (;;) {
        std::byte* pointer = nullptr;
        {
            const std::lock_guard lock(pinned_mutex);
            if (idle_pinned_bytes <= keep) return;
            for (size_t log = idle_pinned.size(); !pointer; --log) {
                std::vector<std::byte*>& idle = idle_pinned[log - 1];
                if (idle.empty()) continue;
                pointer = idle.back();
                idle.pop_back();
                idle_pinned_bytes -= size_t{1} << (log - 1);
            }
        }
        driver.cuMemFreeHost(pointer);
    }
}

void Device::State::trim() {
    if (pool) check(driver.cuMemPoolTrimTo(pool, 0), "giving memory back");
    for (const FreeBlocks::Block& block : free_blocks.take_all()) {
        give_event(block.over);
        check(driver.cuMemFree(block.address), "giving memory back");
    }
    trim_pinned(0);
}

void Device::trim() {
    const Current current(*this);
    state_->trim();
}

void Device::collect_with(std::function<void()> collect) {
    const std::lock_guard lock(state_->collect_mutex);
    state_->collect = std::move(collect);
}

size_t Device::used_bytes() const { return state_->account.used(); }
size_t Device::peak_bytes() const { return state_->account.peak(); }
void Device::reset_peak() { state_->account.reset_peak(); }

// ---- Events and streams

CUevent Device::State::take_event() {
    {
        const std::lock_guard lock(idle_mutex);
        if (!idle_events.empty()) {
            const CUevent event = idle_events.back();
            idle_events.pop_back();
            return event;
        }
    }
    CUevent event = nullptr;
    check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event");
    return event;
}

void Device::State::give_event(CUevent event) {
    const std::lock_guard lock(idle_mutex);
    idle_events.push_back(event);
}

void Device::State::order(CUstream first, CUstream second) {
    if (first == second) return;
    const CUevent event = take_event();
    // The wait is for what the event has recorded at this call, so it may be recorded again at once.
    CUresult result = driver.cuEventRecord(event, first);
    if (result == CUDA_SUCCESS) result = driver.cuStreamWaitEvent(second, event, 0);
    give_event(event);
    check(result, "ordering two streams");
}

Stream Device::own_stream() {
    State& state = *state_;
    CUstream handle = nullptr;
    {
        const std::lock_guard lock(state.idle_mutex);
        if (!state.idle_streams.empty()) {
            handle = state.idle_streams.back();
            state.idle_streams.pop_back();
        }
    }
    if (!handle) {
        const Current current(*this);
        state.check(state.driver.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING), "making a stream");
    }
    return {handle, Owner(static_cast<const void*>(handle), [device = shared_from_this()](const void* stream) noexcept {
                if (is_forked()) return;
                State& state = device->state();
                const std::lock_guard lock(state.idle_mutex);
                state.idle_streams.push_back(static_cast<CUstream>(const_cast<void*>(stream)));
            })};
}

}  // namespace hopfuse::device
