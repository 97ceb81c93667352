// The floating-point mode of a thread. Libraries built with -ffast-math, torch.set_flush_denormal and fesetround change it
// for a whole thread; results depend on it.
#pragma once

#include <cstdint>

namespace hopfuse {

// IEEE 754's default mode while it exists, then the mode of before: rounding to nearest, subnormal numbers kept, no traps.
class FloatMode {
public:
#if defined(__x86_64__)
    FloatMode() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
    ~FloatMode() { __builtin_ia32_ldmxcsr(before_); }
#elif defined(__aarch64__)
    FloatMode() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
    }
    ~FloatMode() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
#else
    FloatMode() {}
    ~FloatMode() {}
#endif
    FloatMode(const FloatMode&) = delete;
    FloatMode& operator=(const FloatMode&) = delete;

private:
#if defined(__x86_64__)
    unsigned before_;  // MXCSR, with the flags of earlier exceptions
#elif defined(__aarch64__)
    uint64_t before_;
#endif
};

}  // namespace hopfuse
