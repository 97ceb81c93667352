// What the host side of a device throws; the bindings translate it to Python's exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace hopfuse::device {

// A call of the driver failed. `call` names the operation in words, `name` and `text` are the driver's.
class DriverError : public std::runtime_error {
public:
    DriverError(int code, std::string call, std::string name, std::string text);
    int code;
    std::string call, name, text;
    bool is_no_memory() const;
    bool is_sticky() const;  // whether every later call of this process fails too
};

// The device cannot allocate, even after everything cached was freed.
class NoMemory : public std::runtime_error {
public:
    NoMemory(size_t asked, size_t free, size_t total);
    size_t asked, free, total;
};

// Something that is resident (a graph, a corpus) needs more memory than is free; nothing was allocated.
class NoRoom : public std::runtime_error {
public:
    NoRoom(std::string what, size_t needed, size_t free);
    std::string what_for;
    size_t needed, free;
};

// No driver, an entry point that it lacks, or one that is too old (`version`, 0: unknown).
class NoDriver : public std::runtime_error {
public:
    explicit NoDriver(const std::string& why, int version = 0);
    int version;
};

// An environment variable that is read when a device is opened has no valid value.
class InvalidSetting : public std::invalid_argument {
public:
    InvalidSetting(std::string variable, std::string given, std::string allowed);
    std::string variable, given, allowed;
};

// A core does in a recording what cannot be replayed: it reads results, uploads other values, or requests other memory.
class NotRecordable : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

// The caller's token was cancelled, or a signal handler raised.
class Cancelled : public std::exception {};

}  // namespace hopfuse::device
