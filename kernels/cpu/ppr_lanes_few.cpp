// The solver for blocks of up to 8 lanes.
#include "ppr_lanes.h"

namespace hopfuse::HOPFUSE_ISA_NS {

HOPFUSE_LANES(, 1)
HOPFUSE_LANES(, 4)
HOPFUSE_LANES(, 8)

}  // namespace hopfuse::HOPFUSE_ISA_NS
