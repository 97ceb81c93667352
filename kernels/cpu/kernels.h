// The table of CPU kernels: one instance per instruction set, chosen once at load.
#pragma once

#include "hopfuse/calibrate.h"
#include "hopfuse/dense_topk.h"
#include "hopfuse/dice.h"
#include "hopfuse/fuse.h"
#include "hopfuse/ising.h"
#include "hopfuse/ppr.h"
#include "hopfuse/project.h"
#include "hopfuse/similarity.h"

namespace hopfuse {

struct CpuKernels {
    Status (*ppr_f32)(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&);
    Status (*dense_encode)(const DenseVectors&, DenseCodes);
    Status (*dense_topk)(const DenseCorpus&, const DenseQueries&, const DenseHits&);
    Status (*calibrate_f32)(const CalibrateArgs&);
    Status (*fuse_f32)(const FuseArgs&);
    Status (*ising_f32)(const IsingArgs&);
    Status (*dice_f32)(const DiceArgs&);
    Status (*project_f32)(const ProjectArgs&, float* out, const ProjectHits* hits);
    Status (*similarity_f32)(const SimilarityArgs&, float* out);
    // Whether the dot products of codes, on which dense search's bound rests, are exact on this processor.
    bool (*code_dots_are_exact)();
};

// Kernels under the name by which they are chosen. A set that serves dense search alone has the others from a second set.
struct CpuVariant : CpuKernels {
    const char* isa;
    const char* isa_of_others;  // the set of all kernels but dense search: mostly the same
};

#if defined(HOPFUSE_ISA_NS)
// What is compiled once per instruction set.
namespace HOPFUSE_ISA_NS {

extern const CpuKernels kernels;

Status ppr_f32(const PprGraph&, const PprQueries&, float* scores, const PprTopk* top, const PprEvidence&);
Status dense_encode(const DenseVectors&, DenseCodes);
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
// Those whose instructions the machine says it has, but whose dot products of codes are wrong on it; null after the last.
const char* const* refused_isas();

}  // namespace hopfuse
