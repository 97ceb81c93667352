// The table of CPU kernels: one instance per instruction set, chosen once at load.
#pragma once

#include "hopfuse/calibrate.h"
#include "hopfuse/dense_topk.h"
#include "hopfuse/dice.h"
#include "hopfuse/fuse.h"
#include "hopfuse/ising.h"
#include "hopfuse/ppr.h"
#include "hopfuse/project.h"

namespace hopfuse {

struct CpuKernels {
    const char* isa;
    Status (*ppr_f32)(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&);
    Status (*dense_encode)(const DenseVectors&, DenseCodes);
    Status (*dense_topk)(const DenseCorpus&, const DenseQueries&, const DenseHits&);
    Status (*calibrate_f32)(const CalibrateArgs&);
    Status (*fuse_f32)(const FuseArgs&);
    Status (*ising_f32)(const IsingArgs&);
    Status (*dice_f32)(const DiceArgs&);
    Status (*project_f32)(const ProjectArgs&, float* out, const ProjectHits* hits);
};

#define HOPFUSE_DECLARE_ISA(ns)                                                                                \
    namespace ns {                                                                                             \
    Status ppr_f32(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&); \
    Status dense_encode(const DenseVectors&, DenseCodes);                                                      \
    Status dense_topk(const DenseCorpus&, const DenseQueries&, const DenseHits&);                              \
    Status calibrate_f32(const CalibrateArgs&);                                                                \
    Status fuse_f32(const FuseArgs&);                                                                          \
    Status ising_f32(const IsingArgs&);                                                                        \
    Status dice_f32(const DiceArgs&);                                                                          \
    Status project_f32(const ProjectArgs&, float* out, const ProjectHits* hits);                               \
    }

HOPFUSE_DECLARE_ISA(baseline)
HOPFUSE_DECLARE_ISA(avx2)
HOPFUSE_DECLARE_ISA(avx512)
HOPFUSE_DECLARE_ISA(neon)

#undef HOPFUSE_DECLARE_ISA

// The variants in this build that this machine can run, best first, ending with "baseline"; null after the last.
const CpuKernels* const* runnable_kernels();
// Every variant in this build, for reports; null after the last.
const char* const* built_isas();

}  // namespace hopfuse
