// The table of one instruction set's kernels.
#include "kernels.h"

namespace hopfuse::HOPFUSE_ISA_NS {

const CpuKernels kernels = {ppr_f32,   ppr_push_f64, dense_encode, dense_topk,     calibrate_f32,      fuse_f32,
                            ising_f32, dice_f32,     project_f32,  similarity_f32, code_dots_are_exact};

}  // namespace hopfuse::HOPFUSE_ISA_NS
