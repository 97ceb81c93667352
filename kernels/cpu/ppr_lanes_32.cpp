// The solver for blocks of 32 lanes.
#include "ppr_lanes.h"

namespace hopfuse::HOPFUSE_ISA_NS {

HOPFUSE_LANES(, 32)

}  // namespace hopfuse::HOPFUSE_ISA_NS
