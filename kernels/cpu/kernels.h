// The table of CPU kernels. Each instruction set has one; it is chosen once at load.
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

struct CpuKernels {
    Status (*ppr_f32)(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&);
    Status (*ppr_push_f64)(const PprGraph&, const PprQueries&, const PprPush&, const PprTopk&, const PprEvidence&,
                           const PprPushEvidence&);
    Status (*dense_encode)(const DenseVectors&, DenseCodes, const Execution&);
    Status (*dense_topk)(const DenseCorpus&, const DenseQueries&, const DenseHits&);
    Status (*calibrate_f32)(const CalibrateArgs&);
    Status (*fuse_f32)(const FuseArgs&);
    Status (*ising_f32)(const IsingArgs&);
    Status (*dice_f32)(const DiceArgs&);
    Status (*project_f32)(const ProjectArgs&, float* out, const ProjectHits* hits);
    Status (*similarity_f32)(const SimilarityArgs&, float* out);
    // Whether dot products of codes are exact on this processor; the bound of dense search relies on that.
    bool (*code_dots_are_exact)();
};

// Kernels and the name by which they are chosen. A set for dense search only takes the other kernels from a second set.
struct CpuVariant : CpuKernels {
    const char* isa;
    const char* isa_of_others;  // the set of all kernels except dense search; usually the same
};

#if defined(HOPFUSE_ISA_NS)
// Compiled once per instruction set.
namespace HOPFUSE_ISA_NS {

extern const CpuKernels kernels;

Status ppr_f32(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&);
Status ppr_push_f64(const PprGraph&, const PprQueries&, const PprPush&, const PprTopk&, const PprEvidence&,
                    const PprPushEvidence&);
Status dense_encode(const DenseVectors&, DenseCodes, const Execution&);
Status dense_topk(const DenseCorpus&, const DenseQueries&, const DenseHits&);
Status calibrate_f32(const CalibrateArgs&);
Status fuse_f32(const FuseArgs&);
Status ising_f32(const IsingArgs&);
Status dice_f32(const DiceArgs&);
Status project_f32(const ProjectArgs&, float* out, const ProjectHits* hits);
Status similarity_f32(const SimilarityArgs&, float* out);
bool code_dots_are_exact();

}  // namespace HOPFUSE_ISA_NS
#endif

// The variants in this build that this machine can run, best first, ending with "baseline"; null after the last.
const CpuVariant* const* runnable_variants();
// Every variant in this build, best first, for reports; null after the last.
const char* const* built_isas();
// Variants whose instructions this machine reports, but whose dot products of codes are wrong on it; null after the last.
const char* const* refused_isas();

}  // namespace hopfuse
