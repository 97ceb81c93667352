// The variants of this build, and those that this machine can run. Compiled for the baseline.
#include "kernels.h"

#if defined(HOPFUSE_X86)
#include <cpuid.h>
#endif
#if defined(HOPFUSE_X86) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace hopfuse {

#define HOPFUSE_TABLES(isa)                  \
    namespace isa {                          \
    extern const DenseKernels dense_kernels; \
    extern const OtherKernels other_kernels; \
    }
HOPFUSE_TABLES(baseline)
HOPFUSE_TABLES(avx2)
HOPFUSE_TABLES(avxvnni)  // dense search only
HOPFUSE_TABLES(avx512)
HOPFUSE_TABLES(amx)  // dense search only
HOPFUSE_TABLES(neon)
#undef HOPFUSE_TABLES

namespace {

#if defined(HOPFUSE_X86)

// What the processor and the operating system support, from CPUID; for AMX, the system is also asked.
struct Offer {
    bool avx2, avxvnni, avx512, amx;

    Offer() {
        __builtin_cpu_init();
        avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
        avxvnni = avx2 && has_avxvnni();
        avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vnni");
        amx = avx512 && has_amx_int8() && may_use_amx();
    }

    static bool has_f16c() {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    }

    static bool has_avxvnni() {
        constexpr unsigned leaf = 7, bit = 1u << 4;  // of EAX of subleaf 1
        unsigned subleaves = 0, a = 0, b = 0, c = 0, d = 0;
        if (__get_cpuid_count(leaf, 0, &subleaves, &b, &c, &d) == 0 || subleaves < 1) return false;
        return __get_cpuid_count(leaf, 1, &a, &b, &c, &d) != 0 && (a & bit) != 0;
    }

    static bool has_amx_int8() {
        constexpr unsigned tiles = 1u << 24, bytes = 1u << 25;  // of EDX of leaf 7
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles) != 0 && (d & bytes) != 0;
    }

    // Linux saves the tile registers only for processes that have asked for them, whose children may use them too. It
    // refuses if some thread's alternate signal stack is too small for them, and so do older systems.
    static bool may_use_amx() {
#if defined(__linux__) && defined(SYS_arch_prctl)
        constexpr long request_permission = 0x1023, tile_data = 18;
        return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
        return false;
#endif
    }
};

#endif

// Each list ends with null.
struct Variants {
    static constexpr int MOST = 5;
    CpuVariant kept[MOST];
    const CpuVariant* runnable[MOST + 1] = {};
    const char* built[MOST + 1] = {};
    const char* refused[MOST + 1] = {};

    Variants() {
#if defined(HOPFUSE_X86)
        const Offer offer;
        add({{amx::dense_kernels, avx512::other_kernels}, "amx", "avx512"}, offer.amx);
        add({{avx512::dense_kernels, avx512::other_kernels}, "avx512", "avx512"}, offer.avx512);
        add({{avxvnni::dense_kernels, avx2::other_kernels}, "avxvnni", "avx2"}, offer.avxvnni);
        add({{avx2::dense_kernels, avx2::other_kernels}, "avx2", "avx2"}, offer.avx2);
#elif defined(HOPFUSE_ARM64)
        add({{neon::dense_kernels, neon::other_kernels}, "neon", "neon"}, true);  // NEON with fma is part of AArch64
#endif
        built[built_count++] = "baseline";
        run({{baseline::dense_kernels, baseline::other_kernels}, "baseline", "baseline"});
    }

private:
    int built_count = 0, runnable_count = 0, refused_count = 0;

    // A supported variant is verified before it may be chosen.
    void add(const CpuVariant& variant, bool is_offered) {
        built[built_count++] = variant.isa;
        if (!is_offered) return;
        if (variant.code_dots_are_exact()) return run(variant);
        refused[refused_count++] = variant.isa;
    }

    void run(const CpuVariant& variant) {
        kept[runnable_count] = variant;
        runnable[runnable_count] = &kept[runnable_count];
        ++runnable_count;
    }
};

const Variants& variants() {
    static const Variants made;
    return made;
}

}  // namespace

const CpuVariant* const* runnable_variants() { return variants().runnable; }

const CpuVariant& best_variant() { return *variants().runnable[0]; }

const char* const* built_isas() { return variants().built; }

const char* const* refused_isas() { return variants().refused; }

}  // namespace hopfuse
