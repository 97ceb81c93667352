#include "recording.h"

#include <algorithm>
#include <cstring>

#include "groups.h"
#include "tape.h"

namespace hopfuse::device {
namespace {

constexpr size_t MOST_WASTED = 2;          // a block serves requests of at least half its size
constexpr size_t CONSTANTS = 64 << 10;     // bytes that are allocated at once for small constants
constexpr size_t MOST_BETWEEN = 64 << 10;  // bytes between results that are copied with them

}  // namespace

// ---- Memory

RecordingMemory::~RecordingMemory() {
    if (!over_ || is_forked()) return;
    try {
        const Current current(*device_);
        device_->driver().cuEventDestroy(over_);
    } catch (...) {
        // The device has failed.
    }
}

RecordingMemory::Block RecordingMemory::take(size_t nbytes, Owner& lease) {
    const size_t asked = std::max<size_t>(1, nbytes);
    std::optional<Block> found;
    {
        const std::lock_guard lock(mutex_);
        const auto smallest = free_.lower_bound({asked, 0});
        if (smallest != free_.end() && smallest->first <= MOST_WASTED * asked) {
            found = blocks_.at(smallest->second);
            free_.erase(smallest);
        }
    }
    if (!found) {
        const Owner made = HOPFUSE_PLANT(24, device_->fixed_memory(asked), device_->state().take(*device_, asked, {}));
        const std::lock_guard lock(mutex_);
        found = Block{made, asked, made_++};
        blocks_.emplace(found->number, *found);
    }
    if (HOPFUSE_PLANT(26, false, true)) release(found->number);
    // The lease keeps the block alive too, which may be forgotten before.
    lease = Owner(found->owner.get(), [memory = shared_from_this(), block = *found](const void*) noexcept {
        memory->release(block.number);
    });
    if (HOPFUSE_PLANT(17, false, true)) {
        const std::lock_guard lock(mutex_);
        found->owner = blocks_.at(found->number).owner = Owner(Owner(), found->owner.get());
    }
    return *found;
}

void RecordingMemory::release(uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blocks_.find(number); found != blocks_.end()) free_.insert({found->second.nbytes, number});
}

uint64_t RecordingMemory::made() {
    const std::lock_guard lock(mutex_);
    return made_;
}

void RecordingMemory::forget(uint64_t first) {
    std::vector<Owner> dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    for (auto at = blocks_.lower_bound(first); at != blocks_.end(); at = blocks_.erase(at)) {
        free_.erase({at->second.nbytes, at->first});
        dropped.push_back(std::move(at->second.owner));
    }
}

size_t RecordingMemory::nbytes() {
    const std::lock_guard lock(mutex_);
    size_t sum = 0;
    for (const auto& [number, block] : blocks_) sum += block.nbytes;
    return sum;
}

void RecordingMemory::begin_use(CUstream stream) {
    if (over_ && HOPFUSE_PLANT(14, true, false))
        device_->state().check(device_->driver().cuStreamWaitEvent(stream, over_, 0), "waiting for a replay");
}

void RecordingMemory::wait() noexcept {
    if (over_) device_->driver().cuEventSynchronize(over_);
}

void RecordingMemory::end_use(CUstream stream) {
    Device::State& state = device_->state();
    if (!over_) state.check(state.driver.cuEventCreate(&over_, CU_EVENT_DISABLE_TIMING), "making an event");
    state.check(state.driver.cuEventRecord(over_, stream), "a replay");
}

std::shared_ptr<RecordingMemory> recording_memory(std::shared_ptr<Device> device) {
    return std::make_shared<RecordingMemory>(std::move(device));
}

size_t recording_bytes(const RecordingMemory& memory) { return const_cast<RecordingMemory&>(memory).nbytes(); }

// ---- Tape

namespace {

bool contains(const RecordingMemory::Block& block, const void* address) {
    const char *const begin = static_cast<const char*>(block.owner.get()), *const at =
                                                                               static_cast<const char*>(address);
    return begin <= at && at < begin + block.nbytes;
}

}  // namespace

void Tape::begin_first() {
    clear();
    is_recording_ = false;
    first_ = memory_->made();
}

void Tape::begin_recorded() {
    is_recording_ = true;
    if (HOPFUSE_PLANT(52, true, next_ == 0)) next_ = next_constant_ = 0;
}

void Tape::place_results(std::span<const void* const> results, CUstream stream) {
    placed_.assign(given_.size(), nullptr);
    std::vector<size_t> chosen, begins;
    size_t total = 0;
    for (const void* const result : results) {
        // The last request that was given this memory is the one whose array is still there.
        size_t at = given_.size();
        while (at > 0 && !contains(given_[at - 1].second, result)) --at;
        if (at == 0 || std::find(chosen.begin(), chosen.end(), at - 1) != chosen.end()) continue;
        chosen.push_back(at - 1), begins.push_back(total);
        total += rounded(std::max<size_t>(1, given_[at - 1].first), ALIGNMENT);
    }
    if (chosen.size() < 2) return;  // they are together as it is
    Owner lease;
    results_ = HOPFUSE_PLANT(27, device_->fixed_memory(total), memory_->take(total, lease).owner);
    results_bytes_ = total;
    for (size_t i = 0; i < chosen.size(); ++i)
        placed_[chosen[i]] = static_cast<char*>(const_cast<void*>(results_.get())) + begins[i];
    // What is between results is read with them.
    Device::State& of = device_->state();
    of.check(of.driver.cuMemsetD8Async(address_of(results_.get()), 0, total, stream), "clearing memory");
}

void Tape::check_end() const {
    if (next_ != given_.size())
        throw NotRecordable("the captured work requests less memory in its recording than in the run before it");
    if (next_constant_ != constants_.size())
        throw NotRecordable("the captured work uploads less in its recording than in the run before it");
}

void Tape::clear() {
    given_.clear();
    placed_.clear();
    results_.reset();
    constants_.clear();
    kept_.clear();
    chunk_.reset();
}

void Tape::abandon() {
    clear();
    if (HOPFUSE_PLANT(25, true, false)) memory_->forget(first_);
}

Owner Tape::take(size_t nbytes) {
    if (!is_recording_) {
        Owner lease;
        given_.emplace_back(nbytes, memory_->take(nbytes, lease));
        return lease;
    }
    if (next_ == given_.size() || given_[next_].first != nbytes)
        throw NotRecordable("the captured work requests other memory in its recording than in the run before it");
    const size_t at = next_++;
    const bool is_placed = at < placed_.size() && placed_[at];
    const Owner owner = is_placed ? Owner(results_, placed_[at]) : given_[at].second.owner;
    return HOPFUSE_PLANT(16, owner, Owner(Owner(), owner.get()));
}

Owner Tape::add_constant(std::span<const void* const> data, std::span<const size_t> nbytes, size_t total) {
    Constant made{{nbytes.begin(), nbytes.end()}, {}, {}};
    for (size_t i = 0; i < data.size(); ++i)
        if (nbytes[i]) made.bytes.append(static_cast<const char*>(data[i]), nbytes[i]);
    const size_t size = rounded(std::max<size_t>(1, total), ALIGNMENT);
    if (HOPFUSE_PLANT(19, false, true)) {
        Owner lease;
        made.memory = memory_->take(size, lease).owner;
    } else if (size > CONSTANTS / 2) {
        made.memory = device_->fixed_memory(size);
    } else {
        if (!chunk_ || chunk_used_ + size > CONSTANTS) {
            chunk_ = device_->fixed_memory(CONSTANTS);
            chunk_used_ = 0;
        }
        made.memory = Owner(chunk_, static_cast<const char*>(chunk_.get()) + chunk_used_);
        chunk_used_ += size;
    }
    constants_.push_back(std::move(made));
    return constants_.back().memory;
}

Owner Tape::next_constant(std::span<const void* const> data, std::span<const size_t> nbytes) {
    if (next_constant_ == constants_.size())
        throw NotRecordable("the captured work uploads more in its recording than in the run before it");
    const Constant& before = constants_[next_constant_++];
    bool is_same = std::equal(nbytes.begin(), nbytes.end(), before.nbytes.begin(), before.nbytes.end());
    const char* at = before.bytes.data();
    for (size_t i = 0; is_same && i < data.size(); at += nbytes[i++])
        is_same = !nbytes[i] || !std::memcmp(data[i], at, nbytes[i]);
    if (HOPFUSE_PLANT(53, !is_same, false))
        throw NotRecordable("the captured work uploads other values in its recording than in the run before it");
    return before.memory;
}

void Tape::keep(Owner owner) {
    if (std::find(kept_.begin(), kept_.end(), owner) == kept_.end()) kept_.push_back(std::move(owner));
}

int64_t Tape::block_of(const void* address) const {
    if (results_ && contains({results_, results_bytes_, 0}, address)) return INT64_MAX;
    for (const auto& [nbytes, block] : given_)
        if (contains(block, address)) return static_cast<int64_t>(block.number);
    return -1;
}

// ---- Recordings

struct Recording::State {
    enum class Run { none, first, recorded };

    std::shared_ptr<Device> device;
    std::shared_ptr<RecordingMemory> memory;
    Tape tape;
    Stream stream;

    std::vector<size_t> input_bytes, input_begins;
    size_t input_total = 0;
    Owner inputs;
    std::shared_ptr<std::byte[]> staged;

    std::optional<Queue> queue;
    Run run = Run::none;
    bool run_for_host = false, is_capturing = false, has_run = false;
    bool was_dropped = false;    // since the last replay
    CUgraphExec graphs[2] = {};  // for a device, for the host

    std::vector<const void*> results;
    std::vector<size_t> result_bytes, result_begins;
    std::shared_ptr<std::byte[]> received;

    State(std::shared_ptr<Device> given, std::shared_ptr<RecordingMemory> shared)
        : device(given), memory(std::move(shared)), tape(given, memory), stream(given->own_stream()) {}

    Device::State& of() const { return device->state(); }

    // Ends the capture, if one is under way; null if it was broken.
    CUgraph end_capture() {
        if (!is_capturing) return nullptr;
        is_capturing = false;
        of().captures.fetch_sub(1);
        CUgraph graph = nullptr;
        return of().driver.cuStreamEndCapture(stream.handle, &graph) == CUDA_SUCCESS ? graph : nullptr;
    }

    void drop_graphs() {
        for (CUgraphExec& graph : graphs) {
            if (graph) of().driver.cuGraphExecDestroy(graph);
            graph = nullptr;
        }
    }

    // Queues a replay. False: its grids no longer run at once, and it must be recorded anew.
    bool launch(bool for_host, CUstream on) {
        const CUresult result = of().driver.cuGraphLaunch(graphs[for_host], on);
        const bool is_too_large =
            result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        if (!is_too_large || was_dropped) {
            of().check(result, "a replay");
            was_dropped = false;
            return true;
        }
        memory->wait();
        drop_graphs();
        tape.clear();
        if (HOPFUSE_PLANT(54, true, false)) of().forget_residents();
        has_run = false;
        was_dropped = true;
        return false;
    }
};

Recording::Recording(std::shared_ptr<Device> device, std::shared_ptr<RecordingMemory> memory,
                     std::span<const size_t> input_bytes)
    : state_(std::make_unique<State>(std::move(device), std::move(memory))) {
    State& state = *state_;
    state.input_bytes.assign(input_bytes.begin(), input_bytes.end());
    for (const size_t nbytes : input_bytes) {
        state.input_begins.push_back(rounded(state.input_total, ALIGNMENT));
        state.input_total = state.input_begins.back() + nbytes;
    }
    state.inputs = state.device->fixed_memory(state.input_total);
    state.staged = state.device->pinned(state.input_total);
}

Recording::~Recording() {
    if (is_forked()) return;
    abandon();
    try {
        const Current current(*state_->device);
        // What the recording keeps may be memory of other streams, which do not know of the last replay.
        state_->memory->wait();
        state_->drop_graphs();
    } catch (...) {
        // The device has failed.
    }
}

Array<std::byte> Recording::input(size_t number) const {
    const State& state = *state_;
    std::byte* const base = static_cast<std::byte*>(const_cast<void*>(state.inputs.get()));
    return Array<std::byte>(state.inputs, base + state.input_begins.at(number), state.input_bytes.at(number));
}

std::byte* Recording::staged(size_t number) const { return state_->staged.get() + state_->input_begins.at(number); }

Queue& Recording::begin(const Stream& after, bool records, bool for_host) {
    State& state = *state_;
    Device::State& of = state.of();
    if (state.run != State::Run::none) throw std::logic_error("a run of this recording has not ended");
    if (records && !state.has_run) throw std::logic_error("a recording needs a first run");
    state.queue.emplace(state.device, state.stream, &state.tape);
    state.run = records ? State::Run::recorded : State::Run::first;
    state.run_for_host = for_host;
    try {
        if (HOPFUSE_PLANT(1, true, false)) of.order(after.handle, state.stream.handle);
        state.memory->begin_use(state.stream.handle);
        if (records) {
            state.tape.begin_recorded();
            of.captures.fetch_add(1);
            const CUresult result = of.driver.cuStreamBeginCapture(state.stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED);
            if (result != CUDA_SUCCESS) of.captures.fetch_sub(1);
            of.check(result, "beginning a recording");
            state.is_capturing = true;
        } else {
            state.tape.begin_first();
        }
        if (state.input_total && (!records || HOPFUSE_PLANT(55, for_host, true)))
            of.check(of.driver.cuMemcpyHtoDAsync(address_of(state.inputs.get()), state.staged.get(), state.input_total,
                                                 state.stream.handle),
                     "copying inputs");
    } catch (...) {
        abandon();
        throw;
    }
    return *state.queue;
}

void Recording::end_first(std::span<const void* const> results) {
    State& state = *state_;
    if (state.run != State::Run::first) throw std::logic_error("there is no first run to end");
    state.tape.place_results(results, state.stream.handle);
    // Replays may run on any stream, and must not overlap this run, whose memory they use.
    if (HOPFUSE_PLANT(2, true, false))
        state.of().check(state.of().driver.cuStreamSynchronize(state.stream.handle), "the first run of a recording");
    state.queue.reset();
    state.run = State::Run::none;
    state.has_run = true;
}

void Recording::end_recorded(std::span<const void* const> results, std::span<const size_t> nbytes) {
    State& state = *state_;
    Device::State& of = state.of();
    if (state.run != State::Run::recorded) throw std::logic_error("there is no recorded run to end");
    state.tape.check_end();
    const bool is_other = state.graphs[!state.run_for_host] != nullptr;
    if (is_other && (!std::equal(results.begin(), results.end(), state.results.begin(), state.results.end()) ||
                     !std::equal(nbytes.begin(), nbytes.end(), state.result_bytes.begin(), state.result_bytes.end())))
        throw NotRecordable("the captured work has other results than in the run before it");
    state.results.assign(results.begin(), results.end());
    state.result_bytes.assign(nbytes.begin(), nbytes.end());
    if (state.run_for_host) {
        state.result_begins.resize(results.size());
        const std::vector<Group> groups = group_arrays(
            results, nbytes, state.result_begins,
            [&](size_t i, size_t j) {
                const int64_t block = state.tape.block_of(results[i]);
                return block >= 0 && block == state.tape.block_of(results[j]);
            },
            MOST_BETWEEN);
        state.received = state.device->pinned(groups.empty() ? 0 : groups.back().at + groups.back().nbytes);
        for (const Group& group : groups)
            of.check(of.driver.cuMemcpyDtoHAsync(state.received.get() + group.at, address_of(group.begin), group.nbytes,
                                                 state.stream.handle),
                     "copying results");
    }
    CUgraph graph = nullptr;
    state.is_capturing = false;
    of.captures.fetch_sub(1);
    of.check(of.driver.cuStreamEndCapture(state.stream.handle, &graph), "ending a recording");
    if (HOPFUSE_PLANT(18, false, true)) state.received = {std::shared_ptr<void>(), state.received.get()};
    CUgraphExec made = nullptr;
    const CUresult result = of.driver.cuGraphInstantiateWithFlags(&made, graph, 0);
    of.driver.cuGraphDestroy(graph);
    of.check(result, "ending a recording");
    state.graphs[state.run_for_host] = made;
    state.queue.reset();
    state.run = State::Run::none;
}

void Recording::abandon() {
    State& state = *state_;
    if (state.run == State::Run::none) return;
    const Device::State& of = state.of();
    if (const CUgraph graph = state.end_capture()) of.driver.cuGraphDestroy(graph);
    // What is queued may still write to blocks that others are given next.
    if (HOPFUSE_PLANT(56, true, false)) of.driver.cuStreamSynchronize(state.stream.handle);
    state.queue.reset();
    state.run = State::Run::none;
    if (HOPFUSE_PLANT(57, state.graphs[0] || state.graphs[1], false)) return;  // which use the memory of the first run
    state.tape.abandon();
    state.has_run = false;
}

bool Recording::has_run() const { return state_->has_run; }
bool Recording::is_recorded(bool for_host) const { return state_->graphs[for_host] != nullptr; }

bool Recording::replay_on_host(const Stream* after) {
    State& state = *state_;
    if (!state.graphs[true]) throw std::logic_error("there is no recording for the host");
    state.of().throw_if_broken();
    HOPFUSE_CURRENT(38, *state.device);
    if (after && HOPFUSE_PLANT(58, true, false)) state.of().order(after->handle, state.stream.handle);
    state.memory->begin_use(state.stream.handle);
    if (!state.launch(true, state.stream.handle)) return false;
    state.of().check(state.of().driver.cuStreamSynchronize(state.stream.handle), "a replay");
    return true;
}

const std::byte* Recording::result(size_t number) const {
    return state_->received.get() + state_->result_begins.at(number);
}

void Recording::begin_use(Queue& queue) { state_->memory->begin_use(queue.stream().handle); }

bool Recording::replay(Queue& queue, std::span<void* const> to) {
    State& state = *state_;
    const CUstream stream = queue.stream().handle;
    if (!state.graphs[false]) throw std::logic_error("there is no recording for a device");
    if (to.size() != state.results.size()) throw std::logic_error("a replay has as many targets as results");
    state.memory->begin_use(stream);
    if (!state.launch(false, HOPFUSE_PLANT(13, stream, state.stream.handle))) return false;
    for (size_t i = 0; i < to.size(); ++i) queue.copy_bytes(to[i], state.results[i], state.result_bytes[i]);
    // Not waited for on the host: the next replay waits for this one, on whatever stream.
    state.memory->end_use(stream);
    return true;
}

}  // namespace hopfuse::device
