// The variants of this build, and those that this machine can run. Compiled for the baseline.
#include "kernels.h"

#if defined(HOPFUSE_X86)
#include <cpuid.h>
#endif

namespace hopfuse {

namespace baseline {
extern const CpuKernels kernels;
}

#if defined(HOPFUSE_X86)
namespace avx2 {
extern const CpuKernels kernels;
}

namespace avxvnni {
Status dense_encode(const DenseVectors&, DenseCodes);
Status dense_topk(const DenseCorpus&, const DenseQueries&, const DenseHits&);
bool code_dots_are_exact();
}  // namespace avxvnni

namespace avx512 {
extern const CpuKernels kernels;
}
#elif defined(HOPFUSE_ARM64)
namespace neon {
extern const CpuKernels kernels;
}
#endif

namespace {

#if defined(HOPFUSE_X86)

// What the processor and the operating system support, from CPUID alone.
struct Offer {
    bool avx2, avxvnni, avx512;

    Offer() {
        __builtin_cpu_init();
        avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
        avxvnni = avx2 && has_avxvnni();
        avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vnni");
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
};

// AVX2 plus one instruction that only dense search uses.
CpuVariant avxvnni_variant() {
    CpuVariant made{avx2::kernels, "avxvnni", "avx2"};
    made.dense_encode = avxvnni::dense_encode;
    made.dense_topk = avxvnni::dense_topk;
    made.code_dots_are_exact = avxvnni::code_dots_are_exact;
    return made;
}

#endif

// Each list ends with null.
struct Variants {
    static constexpr int MOST = 4;
    CpuVariant kept[MOST];
    const CpuVariant* runnable[MOST + 1] = {};
    const char* built[MOST + 1] = {};
    const char* refused[MOST + 1] = {};

    Variants() {
#if defined(HOPFUSE_X86)
        const Offer offer;
        add({avx512::kernels, "avx512", "avx512"}, offer.avx512);
        add(avxvnni_variant(), offer.avxvnni);
        add({avx2::kernels, "avx2", "avx2"}, offer.avx2);
#elif defined(HOPFUSE_ARM64)
        add({neon::kernels, "neon", "neon"}, true);  // NEON with fma is part of AArch64
#endif
        built[built_count++] = "baseline";
        run({baseline::kernels, "baseline", "baseline"});
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

const char* const* built_isas() { return variants().built; }

const char* const* refused_isas() { return variants().refused; }

}  // namespace hopfuse
