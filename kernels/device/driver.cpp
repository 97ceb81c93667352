#include "driver.h"

#include "planted.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

namespace hopfuse::device {
namespace {

std::atomic<bool> opened{false}, forked{false};

using Library = void*;
// The last is where the driver of Windows is in WSL, if the linker's cache lacks it.
std::vector<std::string> system_names() { return {"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"}; }
Library open_library(const std::string& name, std::string& why) {
    const Library found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!found) {
        const char* const text = dlerror();
        why = text ? text : name;
    }
    return found;
}
void* symbol_of(Library library, const char* name) { return dlsym(library, name); }
void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] {
        if (opened.load(std::memory_order_relaxed)) forked.store(true, std::memory_order_relaxed);
    });
}

template <class Function>
Function* function_of(Library library, const char* name) {
    return reinterpret_cast<Function*>(symbol_of(library, name));
}

std::string release(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string error_name(const Driver& driver, CUresult code) {
    const char* text = nullptr;
    if (driver.cuGetErrorName && driver.cuGetErrorName(code, &text) == CUDA_SUCCESS && text) return text;
    return "error " + std::to_string(static_cast<int>(code));
}

std::string chosen_library() {
    const char* const chosen = std::getenv("HOPFUSE_LIBCUDA");
    return chosen ? chosen : "";
}

Library open_any(const std::string& chosen, std::string& name) {
    std::string reasons;
    for (const std::string& candidate : chosen.empty() ? system_names() : std::vector<std::string>{chosen}) {
        std::string why;
        if (const Library found = open_library(candidate, why)) {
            name = candidate;
            return found;
        }
        reasons += (reasons.empty() ? "" : "; ") + why;
    }
    throw NoDriver(
        (chosen.empty() ? "there is no CUDA driver: " : "the library that HOPFUSE_LIBCUDA names cannot be opened: ") +
        reasons);
}

Driver open_driver(const std::string& chosen) {
    Driver found;
    const Library library = open_any(chosen, found.library);
    using Version = CUresult(int*);
    if (const auto version_of = function_of<Version>(library, "cuDriverGetVersion")) version_of(&found.version);
    if (found.version < OLDEST_DRIVER)
        throw NoDriver(found.library +
                           (found.version ? " is of CUDA " + release(found.version) : " does not tell its version") +
                           "; CUDA " + release(OLDEST_DRIVER) + " is the oldest that is supported: update the driver",
                       found.version);
    using Find = CUresult(const char*, void**, int, uint64_t, CUdriverProcAddressQueryResult*);
    const auto find = function_of<Find>(library, "cuGetProcAddress_v2");
    if (!find) throw NoDriver(found.library + " lacks the entry point cuGetProcAddress_v2", found.version);
    // The version is part of the question: later ones have other parameters under the same name.
#define HOPFUSE_FIND(name, parameters)                                                                          \
    {                                                                                                           \
        void* at = nullptr;                                                                                     \
        CUdriverProcAddressQueryResult status{};                                                                \
        if (find(#name, &at, OLDEST_DRIVER, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) != CUDA_SUCCESS || !at) \
            throw NoDriver(found.library + " lacks the entry point " #name, found.version);                     \
        found.name = reinterpret_cast<decltype(found.name)>(at);                                                \
    }
    HOPFUSE_DRIVER_ENTRY_POINTS(HOPFUSE_FIND)
#undef HOPFUSE_FIND
    if (const CUresult code = found.cuInit(0); code != CUDA_SUCCESS) {
        const char* text = nullptr;
        found.cuGetErrorString(code, &text);
        throw NoDriver(found.library + " cannot be initialised: " + error_name(found, code) +
                           (text ? " (" + std::string(text) + ")" : ""),
                       found.version);
    }
    return found;
}

}  // namespace

bool is_forked() noexcept { return HOPFUSE_PLANT(65, true, false) && forked.load(std::memory_order_relaxed); }

const Driver& driver() {
    if (is_forked())
        throw NoDriver(
            "this process was forked from one that had used the CUDA driver, which does not work in forked processes: "
            "start processes with the method 'spawn' or 'forkserver', or use the device only after the fork");
    // Nothing of this is destroyed: arrays may be dropped while the process ends.
    static std::atomic<const Driver*> found{nullptr};
    if (const Driver* const known = found.load(std::memory_order_acquire)) return *known;
    static std::mutex& mutex = *new std::mutex;
    static std::optional<std::pair<std::string, NoDriver>>& failed =
        *new std::optional<std::pair<std::string, NoDriver>>;
    const std::lock_guard lock(mutex);
    if (const Driver* const known = found.load(std::memory_order_acquire)) return *known;
    // A driver does not appear while a process runs, and to look again costs milliseconds; but another may have been chosen.
    const std::string chosen = chosen_library();
    if (failed && failed->first == chosen) throw failed->second;
    static const bool is_watched = (watch_forks(), true);
    static_cast<void>(is_watched);
    opened.store(true, std::memory_order_relaxed);  // before, because a process may be forked meanwhile
    try {
        found.store(new Driver(open_driver(chosen)), std::memory_order_release);
    } catch (const NoDriver& why) {
        opened.store(false, std::memory_order_relaxed);
        failed.emplace(chosen, why);
        throw;
    }
    return *found.load(std::memory_order_acquire);
}

void throw_error(const Driver& driver, CUresult code, const std::string& what) {
    const char* text = nullptr;
    if (driver.cuGetErrorString(code, &text) != CUDA_SUCCESS || !text) text = "unknown error";
    throw DriverError(static_cast<int>(code), what, error_name(driver, code), text);
}

}  // namespace hopfuse::device
