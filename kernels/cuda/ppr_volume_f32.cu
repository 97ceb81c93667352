// The volume of each lane's own graph, which sets its pass limit. Contract: hopfuse/ppr.h, SUMS; kernels/cpu/ppr_degrees.h
// gives the same bits. L queries are stored side by side: scale[node][lane].
#include "arguments/ppr_volume_f32.h"
#include "hopfuse/ppr_sum.h"
#include "ppr_scales.h"

namespace hopfuse {

// A node's term: a_v D_v if the walk continues there, else 0.
template <int L>
HOPFUSE_DEVICE double volume_term(const PprScales& scales, int64_t row, int lane) {
    const int64_t at = row * L + lane;
    const double share = scales.attraction == nullptr ? 1.0 : widened(scales.attraction[at]);
    return scales.scale[at] > 0.0 ? share * scales.unscale[at] : 0.0;
}

// For a tile and a lane: the sum of terms in the grain of `anchor`; without one the largest term, and how many are above 0.
template <int L>
HOPFUSE_DEVICE Measured volume_of_tile(const PprScales& scales, const double* anchor, const TileRange& rows, int lane) {
    double sum = 0.0, largest = 0.0;
    const bool counts = anchor == nullptr;
    const double grain = counts ? 0.0 : anchor[lane];
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double term = volume_term<L>(scales, row, lane);
        sum = sum + (counts ? (term > 0.0 ? 1.0 : 0.0) : to_grain(term, grain));
        largest = term > largest ? term : largest;
    }
    return Measured{sum, largest};
}

}  // namespace hopfuse

using namespace hopfuse;

// ppr_volume_lL: if `anchor` is given, the sum per lane of the degrees of rows from which the walk continues; otherwise the
//   anchor, which sets the grain of that sum.
//   Unit: a tile and a lane; a thread. Block: 256. Shared memory: 2056 bytes. Registers: <= 64. Bytes: 16 N L, 4 N L of
//   node weights.
#define HOPFUSE_VOLUME(L)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) ppr_volume_l##L(                                       \
        const PprScales scales, const double* anchor, int64_t num_nodes, const JoinRoom join, double* out) { \
        HOPFUSE_TILE_AND_LANE(L);                                                                            \
        HOPFUSE_JOIN_TILES(L, volume_of_tile<L>(scales, anchor, rows, lane), join);                          \
        out[threadIdx.x] = anchor == nullptr ? ppr_volume_anchor(measured.largest, measured.sum)             \
                                             : ppr_volume(measured.sum, anchor[threadIdx.x]);                \
    }

HOPFUSE_VOLUME(4)
HOPFUSE_VOLUME(8)
HOPFUSE_VOLUME(16)
HOPFUSE_VOLUME(32)

#define HOPFUSE_TYPES(L) HOPFUSE_KERNEL_TYPE(ppr_volume_l##L, VolumeKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
