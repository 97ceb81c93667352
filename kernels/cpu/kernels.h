// The table of CPU kernels. Each instruction set has one; it is chosen once at load. Installed as hopfuse/cpu/kernels.h.
#pragma once

#include "hopfuse/calibrate.h"
#include "hopfuse/dense_topk.h"
#include "hopfuse/dice.h"
#include "hopfuse/fuse.h"
#include "hopfuse/ising.h"
#include "hopfuse/ppr.h"
#include "hopfuse/ppr_push.h"
#include "hopfuse/project.h"
#include "hopfuse/similarity.h"

namespace hopfuse {

// Every kernel once: the type of its result, its name and its parameters. The tables, their declarations and the choice among
// instruction sets follow from these lists. Those that multiply codes are compiled for more sets than the others.
#define HOPFUSE_DENSE_KERNELS(KERNEL)                                                                           \
    KERNEL(Status, dense_topk, (const DenseCorpus&, const DenseQueries&, const DenseHits&))                     \
    /* Whether dot products of codes are exact on this processor, which the bound of dense search relies on. */ \
    KERNEL(bool, code_dots_are_exact, ())
#define HOPFUSE_OTHER_KERNELS(KERNEL)                                                                   \
    KERNEL(Status, dense_encode, (const DenseVectors&, DenseCodes, const Execution&))                   \
    KERNEL(Status, ppr_f32,                                                                             \
           (const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&)) \
    KERNEL(Status, ppr_push_f64,                                                                        \
           (const PprGraph&, const PprQueries&, const PprPush&, const PprTopk&, const PprEvidence&,     \
            const PprPushEvidence&))                                                                    \
    KERNEL(Status, calibrate_f32, (const CalibrateArgs&))                                               \
    KERNEL(Status, fuse_f32, (const FuseArgs&))                                                         \
    KERNEL(Status, ising_f32, (const IsingArgs&))                                                       \
    KERNEL(Status, dice_f32, (const DiceArgs&))                                                         \
    KERNEL(Status, project_f32, (const ProjectArgs&, float* out, const ProjectHits* hits))              \
    KERNEL(Status, similarity_f32, (const SimilarityArgs&, float* out))

#define HOPFUSE_POINTER(result, name, parameters) result(*name) parameters;
struct DenseKernels {
    HOPFUSE_DENSE_KERNELS(HOPFUSE_POINTER)
};
struct OtherKernels {
    HOPFUSE_OTHER_KERNELS(HOPFUSE_POINTER)
};
#undef HOPFUSE_POINTER

struct CpuKernels : DenseKernels, OtherKernels {};

// Kernels and the name by which they are chosen. A set for dense search only takes the other kernels from a second set.
struct CpuVariant : CpuKernels {
    const char* isa;
    const char* isa_of_others;  // the set of all kernels except dense search; usually the same
};

#if defined(HOPFUSE_ISA_NS)
// Compiled once per instruction set.
namespace HOPFUSE_ISA_NS {

extern const DenseKernels dense_kernels;
extern const OtherKernels other_kernels;

#define HOPFUSE_FUNCTION(result, name, parameters) result name parameters;
HOPFUSE_DENSE_KERNELS(HOPFUSE_FUNCTION)
HOPFUSE_OTHER_KERNELS(HOPFUSE_FUNCTION)
#undef HOPFUSE_FUNCTION

}  // namespace HOPFUSE_ISA_NS
#endif

// The variants in this build that this machine can run, best first, ending with "baseline"; null after the last.
const CpuVariant* const* runnable_variants();
// The first of them. Its kernels check little and expect the default floating-point mode.
const CpuVariant& best_variant();
// Every variant in this build, best first, for reports; null after the last.
const char* const* built_isas();
// Variants whose instructions this machine reports, but whose dot products of codes are wrong on it; null after the last.
const char* const* refused_isas();

}  // namespace hopfuse
