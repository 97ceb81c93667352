// The machine as a whole: how calls begin, handles, what was found.
#include <pthread.h>

#include <cstdarg>
#include <cstdio>
#include <unordered_set>

#include "arena.h"
#include "state.h"

namespace simt::driver {

Machine& machine = *new Machine;

namespace {

constexpr size_t most_findings = 1000;
thread_local Entry running = Entry::cuInit;
const char* const entry_names[] = {
#define SIMT_ENTRY(name, asked, since, parameters) #name,
    SIMT_ENTRY_POINTS(SIMT_ENTRY)
#undef SIMT_ENTRY
};

// A child has none of its parent's device: it may not even wait for the lock, which another thread may have held.
const int watch_forks = pthread_atfork(nullptr, nullptr, [] { machine.is_forked = true; });

CUresult injected(Entry entry) {
    auto& failures = machine.failures[static_cast<size_t>(entry)];
    for (size_t i = 0; i < failures.size(); ++i) {
        if (failures[i].skip-- > 0) continue;
        const CUresult code = failures[i].code;
        if (--failures[i].count == 0) failures.erase(failures.begin() + static_cast<ptrdiff_t>(i));
        else failures[i].skip = 0;
        return code;
    }
    return CUDA_SUCCESS;
}

}  // namespace

std::string text(const char* format, ...) {
    va_list list;
    va_start(list, format);
    char line[1024];
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return line;
}

ThreadState& this_thread() {
    static uint64_t threads = 0;  // under the lock
    thread_local ThreadState state;
    if (state.number == 0) state.number = ++threads;
    return state;
}

Entry running_entry() { return running; }
const char* name_of(Entry entry) { return entry_names[static_cast<size_t>(entry)]; }

const char* name_of(Kind kind) {
    static const char* const names[] = {"a context", "a stream", "an event", "a module",      "a function",
                                        "a pool",    "a graph",  "a graph",  "a graph's node"};
    return names[static_cast<size_t>(kind)];
}

void find(const char* kind, const std::string& what) {
    std::string line = std::string(kind) + ": " + name_of(running) + ": " + what;
    for (const std::string& known : machine.findings)
        if (known == line) return;
    if (machine.findings.size() < most_findings) machine.findings.push_back(std::move(line));
}

CUresult refuse(CUresult code, const char* kind, const std::string& what) {
    find(kind, what);
    return code;
}

const char* kept(const std::string& text) {
    static std::unordered_set<std::string>& all = *new std::unordered_set<std::string>;
    return all.insert(text).first->c_str();
}

void log(const Context& context, const char* kind, uint64_t size, const char* name) {
    if (machine.noop) return;
    if (machine.events.size() == most_entries) machine.events.pop_front();
    machine.events.push_back({context.device, kind, name, size});
}

Locked::~Locked() { close_arena(); }

Begin::Begin(Entry entry, Needs needs) {
    if (machine.is_forked) {
        code = CUDA_ERROR_NOT_INITIALIZED;
        return;
    }
    lock.emplace();
    running = entry;
    ++machine.calls[static_cast<size_t>(entry)];
    code = injected(entry);
    if (code != CUDA_SUCCESS || needs == Needs::nothing) return;
    if (!machine.is_initialised) {
        code = refuse(CUDA_ERROR_NOT_INITIALIZED, "context", "before cuInit");
        return;
    }
    if (needs == Needs::initialised) return;
    const auto& current = this_thread().current;
    if (current.empty() || current.back() == nullptr) {
        code = refuse(CUDA_ERROR_INVALID_CONTEXT, "context", "no context is current");
        return;
    }
    context = current.back().get();
    if (context->is_destroyed)
        code = refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context", "the current one is destroyed");
    else if (needs == Needs::context) code = context->error;
}

uint64_t register_object(std::shared_ptr<Object> object, Context* context) {
    const uint64_t handle = machine.next_handle += 64;
    object->handle = handle;
    object->context = context;
    machine.objects[handle] = std::move(object);
    return handle;
}

void forget(uint64_t handle) { machine.objects.erase(handle); }

std::shared_ptr<Object> look_up(uint64_t handle, Kind kind) {
    const auto found = machine.objects.find(handle);
    if (found != machine.objects.end() && found->second->kind == kind) return found->second;
    find("handle", text("0x%llx is not the handle of %s, or not any more", static_cast<unsigned long long>(handle),
                        name_of(kind)));
    return nullptr;
}

}  // namespace simt::driver
