// The tables of one instruction set's kernels.
#include "kernels.h"

namespace hopfuse::HOPFUSE_ISA_NS {

#define HOPFUSE_ADDRESS(result, name, parameters) name,
const DenseKernels dense_kernels = {HOPFUSE_DENSE_KERNELS(HOPFUSE_ADDRESS)};
#if !defined(HOPFUSE_DENSE_ONLY)
const OtherKernels other_kernels = {HOPFUSE_OTHER_KERNELS(HOPFUSE_ADDRESS)};
#endif
#undef HOPFUSE_ADDRESS

}  // namespace hopfuse::HOPFUSE_ISA_NS
