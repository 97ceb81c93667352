#include "control.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "arena.h"
#include "capture.h"
#include "code.h"
#include "memory.h"
#include "queue.h"

namespace simt::driver {

namespace {

// Numbers that can be set.
struct Setting {
    const char* name;
    int64_t (*get)(Device&);
    void (*set)(Device&, int64_t);
};

#define SIMT_SETTING(name)                                                          \
    Setting {                                                                       \
        #name, [](Device& d) { return static_cast<int64_t>(d.name); },              \
            [](Device& d, int64_t v) { d.name = static_cast<decltype(d.name)>(v); } \
    }
const Setting settings[] = {SIMT_SETTING(memory),
                            SIMT_SETTING(order),
                            SIMT_SETTING(mma),
                            SIMT_SETTING(capability),
                            SIMT_SETTING(blocks_at_once),
                            SIMT_SETTING(cooperative),
                            SIMT_SETTING(multiprocessors),
                            SIMT_SETTING(l2_bytes),
                            SIMT_SETTING(memory_clock),
                            SIMT_SETTING(bus_width),
                            SIMT_SETTING(clock),
                            SIMT_SETTING(pools),
                            SIMT_SETTING(ecc),
                            SIMT_SETTING(compute_mode),
                            SIMT_SETTING(seed)};

Device* device_of(int number) {
    return number < 0 || number >= num_devices ? nullptr : &machine.devices[static_cast<size_t>(number)];
}

int64_t objects_of(const Device& device, Kind kind) {
    return std::count_if(machine.objects.begin(), machine.objects.end(), [&](const auto& entry) {
        return entry.second->kind == kind && entry.second->context == device.primary.get();
    });
}

// Numbers that are counted.
bool count(Device& device, const char* name, int64_t& value) {
    const Context* const context = device.primary.get();
    const auto is = [&](const char* other) { return strcmp(name, other) == 0; };
    if (is("used")) value = static_cast<int64_t>(device.used);
    else if (is("contexts")) value = context != nullptr;
    else if (is("error")) value = context == nullptr ? 0 : static_cast<int64_t>(context->error);
    else if (is("streams")) value = objects_of(device, Kind::stream);
    else if (is("events")) value = objects_of(device, Kind::event);
    else if (is("modules")) value = objects_of(device, Kind::module);
    else if (is("graphs")) value = objects_of(device, Kind::graph) + objects_of(device, Kind::graph_exec);
    else if (is("memory_pools")) value = objects_of(device, Kind::pool);
    else if (is("allocations"))
        value = std::count_if(device.allocations.begin(), device.allocations.end(),
                              [](const auto& entry) { return !entry.second->is_free; });
    else if (is("pinned"))
        value = std::count_if(machine.pinned.begin(), machine.pinned.end(), [&](const auto& entry) {
            return !entry.second->is_free && entry.second->context == context;
        });
    else return false;
    return true;
}

const char* const names[] = {
#define SIMT_ENTRY(name, asked, since, parameters) #name,
    SIMT_ENTRY_POINTS(SIMT_ENTRY)
#undef SIMT_ENTRY
};

int number_of(const char* entry) {
    for (size_t i = 0; i < machine.calls.size(); ++i)
        if (strcmp(names[i], entry) == 0) return static_cast<int>(i);
    return -1;
}

void finish_all() {
    for (const Device& device : machine.devices) {
        if (device.primary == nullptr) continue;
        const std::vector<QueuePtr> queues = device.primary->queues;
        for (const QueuePtr& queue : queues) {
            finish(queue->last);
            for (const OpPtr& wait : queue->waits) finish(wait);
        }
        settle(*device.primary);
    }
}

void clear() {
    machine.events.clear();
    machine.launches.clear();
    machine.findings.clear();
    machine.report.clear();
    machine.calls = {};
    machine.graph_allocations = 0;
    for (auto& failures : machine.failures) failures.clear();
}

template <size_t size>
void put(char (&to)[size], const char* text) {
    snprintf(to, size, "%s", text);
}

template <class Log, class Write>
int take(Log& log, Write write) {
    if (log.empty()) return 0;
    write(log.front());
    log.pop_front();
    return 1;
}

}  // namespace

#define SIMT_CONTROL extern "C" __attribute__((visibility("default")))
#define SIMT_LOCKED const Locked locked

SIMT_CONTROL int simt_driver_set(int number, const char* name, int64_t value) {
    SIMT_LOCKED;
    if (number == -1) {
        if (strcmp(name, "driver_version") == 0) machine.driver_version = static_cast<int>(value);
        else if (strcmp(name, "noop") == 0) machine.noop = value != 0;
        else if (strcmp(name, "visible") == 0) machine.visible = static_cast<int>(value);
        else if (strcmp(name, "protection_keys") == 0) machine.with_protection_keys = value != 0;
        else return 0;
        return 1;
    }
    Device* const device = device_of(number);
    for (const Setting& setting : settings)
        if (device != nullptr && strcmp(setting.name, name) == 0) {
            setting.set(*device, value);
            return 1;
        }
    return 0;
}

SIMT_CONTROL int simt_driver_get(int number, const char* name, int64_t* value) {
    SIMT_LOCKED;
    if (number == -1) {
        if (strcmp(name, "driver_version") == 0) *value = machine.driver_version;
        else if (strcmp(name, "noop") == 0) *value = machine.noop;
        else if (strcmp(name, "visible") == 0) *value = machine.visible;
        else if (strcmp(name, "graph_allocations") == 0) *value = static_cast<int64_t>(machine.graph_allocations);
        else return 0;
        return 1;
    }
    Device* const device = device_of(number);
    if (device == nullptr) return 0;
    for (const Setting& setting : settings)
        if (strcmp(setting.name, name) == 0) {
            *value = setting.get(*device);
            return 1;
        }
    return count(*device, name, *value);
}

SIMT_CONTROL int simt_driver_set_name(int number, const char* name) {
    SIMT_LOCKED;
    Device* const device = device_of(number);
    if (device != nullptr) device->name = name;
    return device != nullptr;
}

SIMT_CONTROL int simt_driver_fail(const char* entry, int code, int skip, int count) {
    SIMT_LOCKED;
    const int number = number_of(entry);
    if (number < 0) return 0;
    machine.failures[static_cast<size_t>(number)].push_back({skip, count, static_cast<CUresult>(code)});
    return 1;
}

SIMT_CONTROL int64_t simt_driver_calls(const char* entry) {
    SIMT_LOCKED;
    const int number = number_of(entry);
    return number < 0 ? -1 : static_cast<int64_t>(machine.calls[static_cast<size_t>(number)]);
}

SIMT_CONTROL void simt_driver_clear() {
    SIMT_LOCKED;
    clear();
}

SIMT_CONTROL void simt_driver_reset() {
    SIMT_LOCKED;
    machine.captures.clear();
    destroy_contexts();
    machine.known.clear();
    clear();
}

SIMT_CONTROL void simt_driver_finish() {
    SIMT_LOCKED;
    finish_all();
}

SIMT_CONTROL int simt_driver_peek(uint64_t address, void* target, size_t size) {
    SIMT_LOCKED;
    finish_all();
    const AllocationPtr a = allocation_at(address);
    if (a == nullptr || a->is_free || address - a->begin + size > a->size) return 0;
    memcpy(target, bytes_at(address), size);
    return 1;
}

SIMT_CONTROL int simt_driver_next_event(simt_driver_event* event) {
    SIMT_LOCKED;
    return take(machine.events, [&](const LogEntry& entry) {
        event->device = entry.device;
        event->size = entry.size;
        put(event->kind, entry.kind);
        put(event->name, entry.name);
    });
}

SIMT_CONTROL int simt_driver_next_launch(simt_driver_launch* launch) {
    SIMT_LOCKED;
    return take(machine.launches, [&](const LaunchEntry& entry) {
        launch->device = entry.device;
        std::copy_n(entry.grid, 3, launch->grid);
        std::copy_n(entry.block, 3, launch->block);
        launch->counters = entry.counters;
        put(launch->kernel, entry.kernel);
    });
}

SIMT_CONTROL int simt_driver_next_finding(char* text, size_t size) {
    SIMT_LOCKED;
    return take(machine.findings, [&](const std::string& finding) { snprintf(text, size, "%s", finding.c_str()); });
}

SIMT_CONTROL void simt_driver_report(char* text, size_t size) {
    SIMT_LOCKED;
    snprintf(text, size, "%s", machine.report.c_str());
}

}  // namespace simt::driver
