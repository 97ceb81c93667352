// A device: its context, properties and kernels.
#include "device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "state.h"

namespace hopfuse::device {
namespace {

// Bytes that a multiprocessor gathers from the L2 cache in a cycle (on an H200, 3.8 TB/s).
constexpr double L2_BYTES_PER_CYCLE = 16;
// Of any device.
constexpr int MOST_MULTIPROCESSORS = 256;
// Of the device's memory, the part that the pool keeps for later calls.
constexpr size_t KEPT_PART = 8;

// The device whose context this library has made current on this thread.
thread_local const Device::State* current_state = nullptr;

size_t memory_limit() {
    constexpr const char* VARIABLE = "HOPFUSE_CUDA_MEMORY_LIMIT";
    const char* const given = std::getenv(VARIABLE);
    if (!given || !*given) return SIZE_MAX;
    const std::string_view text = given;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    const int shift = unit.empty() ? 0 : unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : -1;
    if (error != std::errc() || shift < 0 || number == 0 || number > (SIZE_MAX >> shift))
        throw InvalidSetting(VARIABLE, given,
                             "a positive number of bytes, or a positive number and KiB, MiB or GiB, such as 4GiB");
    return static_cast<size_t>(number) << shift;
}

bool keeps_arrays_apart() {
    constexpr const char* VARIABLE = "HOPFUSE_CUDA_MEMORY";
    const char* const given = std::getenv(VARIABLE);
    const std::string_view text = given ? given : "";
    if (text != "" && text != "pool" && text != "separate")
        throw InvalidSetting(VARIABLE, given, "pool, or separate for tools that check memory");
    return text == "separate";
}

bool wants_codes() {
    constexpr const char* VARIABLE = "HOPFUSE_CUDA_CODES";
    const char* const given = std::getenv(VARIABLE);
    const std::string_view text = given ? given : "";
    if (text != "" && text != "auto" && text != "never")
        throw InvalidSetting(VARIABLE, given, "auto, or never for corpora without 8-bit codes on a device");
    return text != "never";
}

std::string text_of(const CUuuid& uuid) {
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string text;
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += DIGITS[byte >> 4];
        text += DIGITS[byte & 15];
    }
    return text;
}

size_t slot_of(std::string_view name) {
    uint64_t first = 0, last = 0;
    std::memcpy(&first, name.data(), std::min<size_t>(8, name.size()));
    if (name.size() > 8) std::memcpy(&last, name.data() + name.size() - 8, 8);
    const uint64_t mixed = (first ^ (last * 0x9E3779B97F4A7C15u) ^ name.size()) * 0xD6E8FEB86659FD93u;
    return static_cast<size_t>(mixed >> 55);  // of 512
}

}  // namespace

// ---- The current context

Current::Current(Device& device) : state_(&device.state()), outer_(current_state) {
    if (HOPFUSE_PLANT(36, false, true)) outer_ = state_;
    if (outer_ == state_) return;
    if (is_forked())
        throw NoDriver(
            "this process was forked from one that had used the device, which does not work in forked processes: "
            "start processes with the method 'spawn' or 'forkserver'");
    Device::State& state = device.state();
    state.check(state.driver.cuCtxPushCurrent(state.context), "making the device current");
    if (HOPFUSE_PLANT(59, true, false)) state.driver.cuThreadExchangeStreamCaptureMode(&mode_);
    current_state = state_;
}

Current::~Current() {
    if (outer_ == state_) return;
    current_state = outer_;
    if (is_forked()) return;
    CUcontext popped = nullptr;
    if (HOPFUSE_PLANT(59, true, false)) state_->driver.cuThreadExchangeStreamCaptureMode(&mode_);
    if (HOPFUSE_PLANT(60, true, false)) state_->driver.cuCtxPopCurrent(&popped);
}

// ---- The device

Device::Properties Device::properties_of(const Driver& driver, int ordinal) {
    CUdevice number = 0;
    device::check(driver, driver.cuDeviceGet(&number, ordinal), "looking for device " + std::to_string(ordinal));
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        return driver.cuDeviceGetAttribute(&value, which, number) == CUDA_SUCCESS ? value
                                                                                  : 0;  // 0: this driver does not tell
    };
    Properties found{};
    char name[256] = {};
    device::check(driver, driver.cuDeviceGetName(name, sizeof name, number), "asking for the device's name");
    CUuuid uuid{};
    device::check(driver, driver.cuDeviceGetUuid(&uuid, number), "asking for the device's identity");
    device::check(driver, driver.cuDeviceTotalMem(&found.total_bytes, number), "asking for the device's memory");
    found.ordinal = ordinal;
    found.name = name;
    found.uuid = text_of(uuid);
    found.capability = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    found.driver_version = driver.version;
    found.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    found.l2_bytes = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    // From clocks in kHz and a width in bits.
    const double memory = 2.0 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                          attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
    const double l2 = L2_BYTES_PER_CYCLE * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * found.multiprocessors;
    found.l2_speedup = memory > 0 ? std::max(1.0, l2 / memory) : 1.0;
    found.has_pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
    found.has_cooperative = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
    found.is_exclusive = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
    return found;
}

Device::State::State(const Driver& driver, int ordinal, Code code)
    : driver(driver), properties(properties_of(driver, ordinal)), code(std::move(code)) {
    account.cap = memory_limit();
    check(driver.cuDeviceGet(&number, ordinal), "looking for the device");
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        return driver.cuDeviceGetAttribute(&value, which, number) == CUDA_SUCCESS ? value : 0;
    };
    keeps_apart = keeps_arrays_apart();
    makes_codes = wants_codes();
    properties.has_pools = properties.has_pools && !keeps_apart;
    most_shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    most_kept = keeps_apart ? 0 : std::min(properties.total_bytes / KEPT_PART, account.cap);

    check(driver.cuDevicePrimaryCtxRetain(&context, number), "making the device's context");
    try {
        check(driver.cuCtxPushCurrent(context), "making the device current");
        // Attributes of the context's process: under MPS, its share of the multiprocessors.
        multiprocessors = properties.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        CUresult result = CUDA_SUCCESS;
        if (properties.has_pools) {
            CUmemPoolProps asked{};
            asked.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
            asked.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
            result = driver.cuMemPoolCreate(&pool, &asked);
            uint64_t kept = most_kept;
            if (result == CUDA_SUCCESS)
                result = driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
        }
        CUcontext popped = nullptr;
        driver.cuCtxPopCurrent(&popped);
        check(result, "making a memory pool");
    } catch (...) {
        if (pool) driver.cuMemPoolDestroy(pool);
        driver.cuDevicePrimaryCtxRelease(number);
        throw;
    }
}

Device::State::~State() {
    for (std::atomic<Function*>& first : functions)
        for (const Function* function = first.load(); function;) {
            const Function* const next = function->next;
            delete function;
            function = next;
        }
    if (is_forked()) {
        for (std::unique_ptr<Staging>& staging : stagings) static_cast<void>(staging.release());
        return;
    }
    driver.cuCtxPushCurrent(context);
    driver.cuCtxSynchronize();
    for (const auto& [name, unit] : units)
        if (unit.module) driver.cuModuleUnload(unit.module);
    for (const FreeBlocks::Block& block : free_blocks.take_all()) {
        driver.cuEventDestroy(block.over);
        driver.cuMemFree(block.address);
    }
    for (const std::unique_ptr<Staging>& staging : stagings) driver.cuMemFreeHost(staging->memory());
    stagings.clear();
    trim_pinned(0);
    for (const CUevent event : idle_events) driver.cuEventDestroy(event);
    for (const CUstream stream : idle_streams) driver.cuStreamDestroy(stream);
    if (pool) driver.cuMemPoolDestroy(pool);
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent(&popped);
    driver.cuDevicePrimaryCtxRelease(number);
}

void Device::State::fail(CUresult result, const std::string& what) {
    try {
        throw_error(driver, result, what);
    } catch (const DriverError& error) {
        if (error.is_sticky()) {
            const std::lock_guard lock(broken_mutex);
            if (!broken) broken.emplace(error);
            is_broken.store(HOPFUSE_PLANT(61, true, false), std::memory_order_release);
        }
        throw;
    }
}

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}
Device::~Device() = default;

std::shared_ptr<Device> Device::open(const Driver& driver, int ordinal, Code code) {
    std::shared_ptr<Device> made(new Device(std::make_unique<State>(driver, ordinal, std::move(code))));
    made->cooperative = made->properties().has_cooperative;
    return made;
}

std::shared_ptr<Device> Device::counting(const std::optional<Properties>& like) {
    std::shared_ptr<Device> made = open(counting_driver(), 0, [](const std::string& unit) -> Image {
        throw std::logic_error("a counting device has no kernels, such as those of " + unit);
    });
    State& state = *made->state_;
    state.is_counting = true;
    // Blocks of the most lanes need the most memory, and the most blocks at once.
    Properties& own = state.properties;
    own.multiprocessors = like ? like->multiprocessors : MOST_MULTIPROCESSORS;
    own.l2_bytes = like ? like->l2_bytes : 0;
    own.l2_speedup = like ? like->l2_speedup : 1;
    if (like) own.total_bytes = like->total_bytes;
    own.total_bytes = std::min(own.total_bytes, std::exchange(state.account.cap, SIZE_MAX));
    made->cooperative = false;
    return made;
}

const Device::Properties& Device::properties() const { return state_->properties; }
const Driver& Device::driver() const { return state_->driver; }
CUcontext Device::context() const { return state_->context; }
bool Device::is_counting() const { return state_->is_counting; }
bool Device::makes_codes() const { return state_->makes_codes; }

// ---- Kernels

Function* Device::State::find(std::string_view unit, std::string_view name) const noexcept {
    Function* function = functions[slot_of(name)].load(std::memory_order_acquire);
    while (function && (function->name != name || function->unit != unit)) function = function->next;
    return function;
}

Function& Device::State::function(Device& device, std::string_view unit, std::string_view name, bool may_load) {
    if (Function* const known = find(unit, name)) return *known;
    if (!may_load)
        throw NotRecordable("the recorded run launches " + std::string(name) + ", which the first run did not launch");
    const Current current(device);
    const CUmodule module = module_of(std::string(unit));
    auto made = std::make_unique<Function>();
    made->unit = unit;
    made->name = name;
    const auto what = [&] { return "looking for the kernel " + made->name + " of " + made->unit; };
    check(driver.cuModuleGetFunction(&made->handle, module, made->name.c_str()), what);
    int of_blocks = 0;
    check(driver.cuFuncGetAttribute(&of_blocks, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, made->handle), what);
    made->most_shared = static_cast<size_t>(std::max(0, most_shared - of_blocks));
    // What the kernel declares itself counts, too.
    made->allowed = FREE_SHARED - std::min(FREE_SHARED, static_cast<size_t>(of_blocks));
    const std::lock_guard lock(units_mutex);
    if (Function* const known = find(unit, name)) return *known;
    std::atomic<Function*>& first = functions[slot_of(name)];
    made->next = first.load(std::memory_order_relaxed);
    first.store(made.get(), HOPFUSE_PLANT(62, std::memory_order_release, std::memory_order_relaxed));
    return *made.release();
}

// Loads a unit once; other threads that need it wait, without a lock that its code could need.
CUmodule Device::State::module_of(const std::string& unit) {
    std::unique_lock lock(units_mutex);
    units_changed.wait(lock, [&] { return HOPFUSE_PLANT(33, !units[unit].is_loading, true); });
    if (units[unit].module) return units[unit].module;
    units[unit].is_loading = true;
    lock.unlock();
    CUmodule module = nullptr;
    std::string origin;
    std::exception_ptr error;
    try {
        Image image = code(unit);
        module = load(image, unit, origin);
    } catch (...) {
        error = std::current_exception();
    }
    lock.lock();
    units[unit].is_loading = false;
    units[unit].module = module;
    units[unit].origin = origin;
    lock.unlock();
    units_changed.notify_all();
    if (error) std::rethrow_exception(error);
    return module;
}

CUmodule Device::State::load(const Image& image, const std::string& unit, std::string& origin) {
    CUmodule module = nullptr;
    const CUresult result = driver.cuModuleLoadData(&module, image.bytes.c_str());
    if (result == CUDA_SUCCESS) {
        origin = image.origin;
        return module;
    }
    try {
        fail(result, "loading " + unit + " (" + image.origin + ")");
    } catch (const DriverError& refused) {
        if (!image.otherwise || HOPFUSE_PLANT(63, false, true) || refused.is_no_memory() || refused.is_sticky()) throw;
        module = load(image.otherwise(refused.name), unit, origin);
        origin += " (the driver refused " + image.origin + ": " + refused.name + ")";
        return module;
    }
}

void Device::State::allow_shared(Function& function, size_t shared) {
    if (shared <= function.allowed.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(function.mutex);
    if (shared <= function.allowed.load(std::memory_order_relaxed)) return;
    // As much as there is, so that this is done once. More is refused at the launch.
    const size_t allowed = HOPFUSE_PLANT(64, std::max(shared, function.most_shared), shared);
    check(driver.cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(allowed)),
          [&] { return "preparing " + function.name + " for " + std::to_string(shared) + " bytes of shared memory"; });
    function.allowed.store(HOPFUSE_PLANT(64, allowed, SIZE_MAX), std::memory_order_release);
}

CUfunction Device::function(std::string_view unit, std::string_view name, size_t shared) {
    const Current current(*this);
    Function& found = state_->function(*this, unit, name, true);
    state_->allow_shared(found, shared);
    return found.handle;
}

int64_t Device::resident_blocks(std::string_view unit, std::string_view name, int threads, size_t shared) {
    if (state_->is_counting) return 0;
    return state_->resident_blocks(*this, state_->function(*this, unit, name, true), threads, shared);
}

int64_t Device::State::resident_blocks(Device& device, Function& function, int threads, size_t shared) {
    {
        const std::lock_guard lock(function.mutex);
        for (const Function::Resident& known : function.residents)
            if (known.threads == threads && known.shared == shared) return known.blocks;
    }
    const Current current(device);
    allow_shared(function, shared);
    int each = 0;
    check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function.handle, threads, shared),
          [&] { return "asking how many blocks of " + function.name + " run at once"; });
    const int64_t blocks = static_cast<int64_t>(each) * multiprocessors.load();
    const std::lock_guard lock(function.mutex);
    function.residents.push_back({threads, shared, blocks});
    return blocks;
}

void Device::State::forget_residents() {
    int now = 0;
    if (driver.cuDeviceGetAttribute(&now, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, number) == CUDA_SUCCESS && now > 0)
        multiprocessors = now;
    for (std::atomic<Function*>& first : functions)
        for (Function* function = first.load(std::memory_order_acquire); function; function = function->next) {
            const std::lock_guard lock(function->mutex);
            function->residents.clear();
        }
}

std::vector<std::pair<std::string, std::string>> Device::origins() const {
    const std::lock_guard lock(state_->units_mutex);
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [name, unit] : state_->units)
        if (unit.module) found.emplace_back(name, unit.origin);
    return found;
}

// ---- Times

namespace {

struct Timing {
    const Device::State* state = nullptr;  // null: not timed
    struct Launch {
        std::string kernel;
        CUevent begin, end;
    };
    std::vector<Launch> launches;
};
thread_local Timing timing;

}  // namespace

bool Device::State::is_timed() const noexcept { return timing.state == this; }

CUevent Device::State::time_event(CUstream stream) {
    CUevent event = nullptr;
    check(driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "timing a kernel");
    check(driver.cuEventRecord(event, stream), "timing a kernel");
    return event;
}

void Device::State::time_launch(std::string_view kernel, CUevent begin, CUstream stream) {
    timing.launches.push_back({std::string(kernel), begin, time_event(stream)});
}

void Device::start_timing() {
    static_cast<void>(read_times());
    timing.state = state_.get();
}

std::vector<LaunchTime> Device::read_times() {
    std::vector<LaunchTime> times;
    if (timing.state != state_.get()) return times;
    timing.state = nullptr;
    const std::vector<Timing::Launch> launches = std::move(timing.launches);
    timing.launches.clear();
    const Current current(*this);
    CUresult result = CUDA_SUCCESS;
    for (const Timing::Launch& launch : launches) {
        float milliseconds = 0;
        if (result == CUDA_SUCCESS) result = driver().cuEventSynchronize(launch.end);
        if (result == CUDA_SUCCESS) result = driver().cuEventElapsedTime(&milliseconds, launch.begin, launch.end);
        driver().cuEventDestroy(launch.begin);
        driver().cuEventDestroy(launch.end);
        times.push_back({launch.kernel, milliseconds / 1e3});
    }
    state_->check(result, "timing kernels");
    return times;
}

}  // namespace hopfuse::device
