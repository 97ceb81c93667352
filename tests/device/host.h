// What the cases of a test program of the host side share: a registry of cases, checks, and the controls of the emulated driver.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "libcuda/control.h"
#include "recording.h"

using namespace hopfuse::device;

struct Case {
    const char* name;
    void (*run)();
};
inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
#define CASE(name)                                                                    \
    static void case_##name();                                                        \
    static const bool added_##name = (cases().push_back({#name, case_##name}), true); \
    static void case_##name()

struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};
#define CHECK(condition) \
    if (!(condition)) throw Failed(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition)

// The error that the body throws; anything else fails the case.
template <class Error, class Body>
Error thrown(const Body& body, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    throw Failed(std::string(file) + ":" + std::to_string(line) + ": nothing was thrown");
}

// The emulated machine.
struct Machine {
    void* library = dlopen(std::getenv("HOPFUSE_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);

    template <class Function>
    Function* find(const char* name) const {
        const auto found = reinterpret_cast<Function*>(dlsym(library, name));
        if (!found) throw Failed(std::string("no ") + name);
        return found;
    }
    void set(const char* name, int64_t value, int device = 0) const {
        CHECK(find<decltype(simt_driver_set)>("simt_driver_set")(device, name, value));
    }
    int64_t get(const char* name, int device = 0) const {
        int64_t value = 0;
        CHECK(find<decltype(simt_driver_get)>("simt_driver_get")(device, name, &value));
        return value;
    }
    void fail(const char* entry, CUresult code, int skip = 0, int count = 1) const {
        CHECK(find<decltype(simt_driver_fail)>("simt_driver_fail")(entry, static_cast<int>(code), skip, count));
    }
    int64_t calls(const char* entry) const { return find<decltype(simt_driver_calls)>("simt_driver_calls")(entry); }
    void finish() const { find<decltype(simt_driver_finish)>("simt_driver_finish")(); }
    void clear() const { find<decltype(simt_driver_clear)>("simt_driver_clear")(); }
    // "upload 512", "launch fill_i32", in the order of the calls.
    std::vector<std::string> events() const {
        std::vector<std::string> found;
        const auto next = find<decltype(simt_driver_next_event)>("simt_driver_next_event");
        for (simt_driver_event event; next(&event);)
            found.push_back(std::string(event.kind) + " " + (event.name[0] ? event.name : std::to_string(event.size)));
        return found;
    }
    size_t count(const std::vector<std::string>& all, const std::string& kind) const {
        return static_cast<size_t>(
            std::count_if(all.begin(), all.end(), [&](const std::string& one) { return one.rfind(kind, 0) == 0; }));
    }
    std::vector<std::string> findings() const {
        std::vector<std::string> found;
        const auto next = find<decltype(simt_driver_next_finding)>("simt_driver_next_finding");
        for (char text[4096]; next(text, sizeof text);) found.emplace_back(text);
        return found;
    }
};
inline Machine& machine() {
    static Machine one;
    return one;
}

inline std::string& image() {
    static std::string bytes;
    return bytes;
}

// Runs the case that the arguments name, on the image in a file. Whatever the machine finds fails it, and what is left behind.
inline int run_case(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: %s CASE IMAGE\n", arguments[0]), 2;
    std::stringstream read;
    read << std::ifstream(arguments[2], std::ios::binary).rdbuf();
    image() = read.str();
    machine();  // before a case changes the environment
    for (const Case& one : cases()) {
        if (std::strcmp(one.name, arguments[1]) != 0) continue;
        try {
            one.run();
            machine().finish();
            std::string wrong;
            for (const std::string& finding : machine().findings()) wrong += finding + "\n";
            for (const char* const what :
                 {"contexts", "streams", "events", "modules", "graphs", "memory_pools", "allocations", "pinned"})
                for (int device = 0; device < 2; ++device)
                    if (const int64_t left = machine().get(what, device))
                        wrong +=
                            std::to_string(left) + " " + what + " are left on device " + std::to_string(device) + "\n";
            if (wrong.empty()) return 0;
            std::fprintf(stderr, "%s", wrong.c_str());
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            for (const std::string& finding : machine().findings()) std::fprintf(stderr, "%s\n", finding.c_str());
        }
        return 1;
    }
    return std::fprintf(stderr, "there is no case %s\n", arguments[1]), 2;
}
