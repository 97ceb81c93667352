// Bugs for the tests of the tests. A build with HOPFUSE_PLANTED has the one whose number is in the environment variable
// HOPFUSE_PLANTED_BUG; tests/device/planted.py names each, and the case that finds it. Other builds have none of this.
#pragma once

#ifdef HOPFUSE_PLANTED

#include <cstdlib>
#include <optional>

namespace hopfuse::device {

inline bool is_planted(int number) {
    static const int chosen = [] {
        const char* const text = std::getenv("HOPFUSE_PLANTED_BUG");
        return text ? std::atoi(text) : 0;
    }();
    return chosen == number;
}

}  // namespace hopfuse::device

#define HOPFUSE_PLANT(number, right, wrong) (::hopfuse::device::is_planted(number) ? (wrong) : (right))
// Makes the device's context current until the end of the block; with the bug, the caller's stays.
#define HOPFUSE_CURRENT(number, ...)                        \
    std::optional<::hopfuse::device::Current> held_current; \
    if (!::hopfuse::device::is_planted(number)) held_current.emplace(__VA_ARGS__)

#else

#define HOPFUSE_PLANT(number, right, wrong) (right)
#define HOPFUSE_CURRENT(number, ...) const ::hopfuse::device::Current held_current(__VA_ARGS__)

#endif
