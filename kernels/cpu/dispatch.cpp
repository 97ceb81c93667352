// Which variants this build has, and which of them this machine can run. Compiled for the baseline.
#include "kernels.h"

#if defined(HOPFUSE_X86)
#include <cpuid.h>
#endif

namespace hopfuse {

namespace {

#define HOPFUSE_TABLE(ns)                                                                 \
    constexpr CpuKernels ns##_kernels = {                                                 \
        #ns,          ns::ppr_f32,   ns::dense_encode, ns::dense_topk, ns::calibrate_f32, \
        ns::fuse_f32, ns::ising_f32, ns::dice_f32,     ns::project_f32}

HOPFUSE_TABLE(baseline);
#if defined(HOPFUSE_X86)
HOPFUSE_TABLE(avx2);
HOPFUSE_TABLE(avx512);
const char* const built[] = {"avx512", "avx2", "baseline", nullptr};
#elif defined(HOPFUSE_ARM64)
HOPFUSE_TABLE(neon);
const char* const built[] = {"neon", "baseline", nullptr};
#else
const char* const built[] = {"baseline", nullptr};
#endif

#undef HOPFUSE_TABLE

struct Runnable {
    const CpuKernels* tables[4] = {};

    Runnable() {
        int count = 0;
#if defined(HOPFUSE_X86)
        __builtin_cpu_init();
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
        const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512vnni");
        if (avx512) tables[count++] = &avx512_kernels;
        if (avx2) tables[count++] = &avx2_kernels;
#elif defined(HOPFUSE_ARM64)
        tables[count++] = &neon_kernels;  // NEON with fma is part of AArch64
#endif
        tables[count] = &baseline_kernels;
    }

#if defined(HOPFUSE_X86)
    static bool has_f16c() {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    }
#endif
};

}  // namespace

const CpuKernels* const* runnable_kernels() {
    static const Runnable runnable;
    return runnable.tables;
}

const char* const* built_isas() { return built; }

}  // namespace hopfuse
