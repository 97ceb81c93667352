// The solver for blocks of 16 lanes.
#include "ppr_lanes.h"

namespace hopfuse::HOPFUSE_ISA_NS {

HOPFUSE_LANES(, 16)

}  // namespace hopfuse::HOPFUSE_ISA_NS
