#include <algorithm>
#include <cstring>

#include "groups.h"
#include "tape.h"

namespace hopfuse::device {

Queue::Queue(std::shared_ptr<Device> device, Stream stream, Tape* tape)
    : device_(std::move(device)), current_(*device_), stream_(std::move(stream)), tape_(tape) {
    Device::State& state = device_->state();
    state.throw_if_broken();
    // Default streams cannot be captured.
    if (tape_ || stream_.handle == nullptr || stream_.handle == legacy_stream() ||
        stream_.handle == per_thread_stream())
        return;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    state.check(state.driver.cuStreamIsCapturing(stream_.handle, &status), "looking at a stream");
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
        throw NotRecordable(
            "the stream is being captured: by the caller, into a graph that is not made here, or by a recording, from "
            "which an array cannot be given to another library");
}

Queue::~Queue() {
    // After an exception, copies may still write to their pinned memory.
    if (!on_way_.empty() && !is_forked()) device_->state().driver.cuStreamSynchronize(stream_.handle);
    if (staging_ && !is_forked()) device_->state().give_staging(staging_, stream_.handle);
}

bool Queue::fixed() const {
    return tape_ || device_->state().is_counting || HOPFUSE_PLANT(30, false, device_->state().captures > 0);
}
bool Queue::is_recorded_run() const { return tape_ && tape_->is_recording(); }

void Queue::keep(Owner owner) {
    if (tape_ && HOPFUSE_PLANT(21, true, false)) tape_->keep(std::move(owner));
}

void Queue::after(const Stream& other) {
    // In the recorded run, the first run has waited for it.
    if (!is_recorded_run()) device_->state().order(other.handle, stream_.handle);
}

void Queue::before(const Stream& other) {
    if (!is_recorded_run()) device_->state().order(stream_.handle, other.handle);
}

void Queue::check_with(Checkpoint checkpoint, void* context) {
    checkpoint_ = checkpoint;
    checkpoint_context_ = context;
}

// ---- Memory

Owner Queue::take(size_t nbytes) {
    if (resident_) return device_->fixed_memory(nbytes);
    if (tape_) return tape_->take(nbytes);
    return device_->state().take(*device_, nbytes, stream_);
}

namespace {

// The offsets of arrays in one block, each aligned.
class Begins {
public:
    explicit Begins(std::span<const size_t> nbytes) {
        if (nbytes.size() > FEW) many_.resize(nbytes.size());
        begins_ = {many_.empty() ? few_ : many_.data(), nbytes.size()};
        for (size_t i = 0; i < nbytes.size(); ++i) {
            begins_[i] = rounded(total, ALIGNMENT);
            total = begins_[i] + std::max<size_t>(1, nbytes[i]);  // an empty array has an address, too
        }
    }
    size_t operator[](size_t i) const { return begins_[i]; }
    operator std::span<const size_t>() const { return begins_; }

    size_t total = 0;

private:
    static constexpr size_t FEW = 32;
    size_t few_[FEW];
    std::vector<size_t> many_;
    std::span<size_t> begins_;
};

// Lets each of these keep all alive, as arrays of one block do.
void live_together(std::span<Owner> owners) {
    const auto all = std::make_shared<const std::vector<Owner>>(owners.begin(), owners.end());
    for (Owner& owner : owners) owner = Owner(all, owner.get());
}

// Pinned memory for a read; null if it is too large, or if the host cannot pin it.
std::shared_ptr<std::byte[]> pinned_if_possible(Device& device, size_t nbytes) {
    if (nbytes > MOST_PINNED) return nullptr;
    try {
        return device.pinned(nbytes);
    } catch (const DriverError& error) {
        if (!error.is_no_memory()) throw;
        return nullptr;  // the host has enough, but not to be pinned
    }
}

}  // namespace

void Queue::allocate(std::span<const size_t> nbytes, std::span<void*> there, std::span<Owner> owners) {
    if (device_->state().keeps_apart) {
        for (size_t i = 0; i < nbytes.size(); ++i) {
            owners[i] = take(std::max<size_t>(1, nbytes[i]));
            there[i] = const_cast<void*>(owners[i].get());
        }
        live_together(owners);
        return;
    }
    const Begins begins(nbytes);
    const Owner owner = take(begins.total);
    char* const base = static_cast<char*>(const_cast<void*>(owner.get()));
    for (size_t i = 0; i < nbytes.size(); ++i) {
        there[i] = base + begins[i];
        owners[i] = owner;
    }
}

void Queue::clear(void* data, size_t nbytes) {
    if (!nbytes) return;
    Device::State& state = device_->state();
    state.check(state.driver.cuMemsetD8Async(address_of(data), 0, nbytes, HOPFUSE_PLANT(7, stream_.handle, nullptr)),
                "clearing memory");
}

// Those of one allocation, from the first to the end of the last.
void Queue::clear_arrays(std::span<void* const> data, std::span<const size_t> nbytes) {
    if (!device_->state().keeps_apart) {
        char* const begin = static_cast<char*>(data.front());
        return clear(begin, static_cast<size_t>(static_cast<char*>(data.back()) - begin) + nbytes.back());
    }
    for (size_t i = 0; i < data.size(); ++i) clear(data[i], nbytes[i]);
}

void Queue::copy_bytes(void* to, const void* from, size_t nbytes) {
    if (!nbytes) return;
    Device::State& state = device_->state();
    state.check(state.driver.cuMemcpyDtoDAsync(address_of(to), address_of(from), nbytes,
                                               HOPFUSE_PLANT(49, stream_.handle, nullptr)),
                "a copy");
}

void Queue::upload_bytes(std::span<const void* const> data, std::span<const size_t> nbytes, std::span<void*> there,
                         std::span<Owner> owners) {
    if (device_->state().keeps_apart && data.size() > 1) {
        for (size_t i = 0; i < data.size(); ++i)
            upload_bytes(data.subspan(i, 1), nbytes.subspan(i, 1), there.subspan(i, 1), owners.subspan(i, 1));
        live_together(owners);
        return;
    }
    const Begins begins(nbytes);
    const size_t total = begins.total;
    Owner owner;
    if (tape_ && !resident_)
        owner = tape_->is_recording() ? tape_->next_constant(data, nbytes) : tape_->add_constant(data, nbytes, total);
    else owner = take(total);
    char* const base = static_cast<char*>(const_cast<void*>(owner.get()));
    if (!is_recorded_run()) copy_up(base, data, nbytes, begins, total);
    for (size_t i = 0; i < data.size(); ++i) {
        there[i] = base + begins[i];
        owners[i] = owner;
    }
}

void Queue::copy_up(char* base, std::span<const void* const> data, std::span<const size_t> nbytes,
                    std::span<const size_t> begins, size_t total) {
    Device::State& state = device_->state();
    if (std::all_of(nbytes.begin(), nbytes.end(), [](size_t each) { return each == 0; })) return;
    if (total <= MOST_STAGED) {
        if (!staging_) staging_ = state.take_staging();
        std::byte* const part = staging_->take(total, stream_.handle);
        for (size_t i = 0; i < data.size(); ++i)
            if (nbytes[i]) std::memcpy(part + begins[i], data[i], nbytes[i]);
        state.check(state.driver.cuMemcpyHtoDAsync(address_of(base), HOPFUSE_PLANT(11, part, data[0]), total,
                                                   HOPFUSE_PLANT(10, stream_.handle, nullptr)),
                    "an upload");
        return;
    }
    for (size_t i = 0; i < data.size(); ++i)
        if (nbytes[i])
            state.check(
                state.driver.cuMemcpyHtoDAsync(address_of(base + begins[i]), data[i], nbytes[i], stream_.handle),
                "an upload");
    // The arrays may be gone on return, and the driver need not have read them by then.
    if (HOPFUSE_PLANT(5, true, false)) synchronize("an upload");
}

void Queue::synchronize(const char* what) {
    Device::State& state = device_->state();
    state.check(state.driver.cuStreamSynchronize(stream_.handle), what);
    if (staging_) staging_->waited();
    on_way_.clear();
}

void Queue::wait() {
    if (tape_) throw NotRecordable("the captured work waits for the device");
    synchronize("waiting for the device");
}

void Queue::read_bytes(std::span<const void* const> from, std::span<void* const> to, std::span<const size_t> nbytes,
                       std::span<const Owner* const> owners) {
    size_t total = 0;
    for (const size_t each : nbytes) total += each;
    if (total > MOST_READ_PINNED) {
        if (fixed()) throw NotRecordable("the captured work reads results");
        Device::State& state = device_->state();
        for (size_t i = 0; i < from.size(); ++i)
            if (nbytes[i])
                state.check(state.driver.cuMemcpyDtoHAsync(to[i], address_of(from[i]), nbytes[i], stream_.handle),
                            "a read");
        if (HOPFUSE_PLANT(4, true, false)) synchronize("a read");
        return;
    }
    std::vector<size_t> begins(from.size());
    const std::shared_ptr<std::byte[]> block = read_pinned(from, nbytes, begins, owners);
    for (size_t i = 0; i < from.size(); ++i)
        if (nbytes[i]) std::memcpy(to[i], block.get() + begins[i], nbytes[i]);
}

std::shared_ptr<std::byte[]> Queue::begin_read(const void* from, size_t nbytes) {
    if (fixed()) throw NotRecordable("the captured work reads results");
    const std::shared_ptr<std::byte[]> block = pinned_if_possible(*device_, nbytes);
    if (!block || nbytes == 0) return block;
    on_way_.push_back(block);
    Device::State& state = device_->state();
    state.check(state.driver.cuMemcpyDtoHAsync(block.get(), address_of(from), nbytes, stream_.handle), "a read");
    return block;
}

std::shared_ptr<std::byte[]> Queue::read_pinned(std::span<const void* const> from, std::span<const size_t> nbytes,
                                                std::span<size_t> begins, std::span<const Owner* const> owners) {
    if (fixed()) throw NotRecordable("the captured work reads results");
    Device::State& state = device_->state();
    const std::vector<Group> groups = group_arrays(from, nbytes, begins, [&](size_t i, size_t j) {
        return !state.keeps_apart && !owners.empty() && !owners[i]->owner_before(*owners[j]) &&
               !owners[j]->owner_before(*owners[i]);
    });
    const size_t total = groups.empty() ? 0 : groups.back().at + groups.back().nbytes;
    std::shared_ptr<std::byte[]> block = pinned_if_possible(*device_, total);
    if (block) on_way_.push_back(block);
    else block.reset(new std::byte[total]);
    for (const Group& group : groups)
        state.check(state.driver.cuMemcpyDtoHAsync(block.get() + group.at, address_of(group.begin), group.nbytes,
                                                   stream_.handle),
                    "a read");
    if (HOPFUSE_PLANT(12, true, false)) synchronize("a read");
    return block;
}

// ---- Work

void Queue::launch_function(std::string_view unit, std::string_view name, const Grid& grid, void** arguments) {
    if (checkpoint_) checkpoint_(checkpoint_context_);
    Device::State& state = device_->state();
    if (state.is_counting) return;
    if (grid.blocks > INT32_MAX) throw std::length_error(std::string(name) + " is launched with too many blocks");
    const bool is_recorded = is_recorded_run();
    Function& function = state.function(*device_, unit, name, HOPFUSE_PLANT(51, !is_recorded, true));
    state.allow_shared(function, grid.shared);
    const bool is_timed = HOPFUSE_PLANT(66, !is_recorded, true) && state.is_timed();
    const CUevent begin = is_timed ? state.time_event(stream_.handle) : nullptr;
    const auto blocks = static_cast<unsigned>(grid.blocks), threads = static_cast<unsigned>(grid.threads),
               shared = static_cast<unsigned>(grid.shared);
    const CUresult result = grid.cooperative
                                ? state.driver.cuLaunchCooperativeKernel(function.handle, blocks, 1, 1, threads, 1, 1,
                                                                         shared, stream_.handle, arguments)
                                : state.driver.cuLaunchKernel(function.handle, blocks, 1, 1, threads, 1, 1, shared,
                                                              stream_.handle, arguments, nullptr);
    state.check(result, [&] {
        return std::string(name) + " of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
               " threads";
    });
    if (is_timed) state.time_launch(name, begin, stream_.handle);
}

// ---- Residents

Queue::Resident::Resident(Queue& queue) : queue_(queue), outer_(queue.resident_) {
    if (queue.is_recorded_run()) throw NotRecordable("the captured work makes a graph or a corpus in its recording");
    queue.resident_ = HOPFUSE_PLANT(22, true, false);
    exceptions_ = std::uncaught_exceptions();
}

Queue::Resident::~Resident() noexcept(false) {
    queue_.resident_ = outer_;
    // Other streams may read what was made.
    if (std::uncaught_exceptions() == exceptions_ && HOPFUSE_PLANT(3, true, false)) queue_.synchronize("an upload");
}

}  // namespace hopfuse::device
