// Error bounds of single nodes from their neighbours; the pass that averages them is that of ppr_f32.cu.
// Contract: hopfuse/ppr.h, LOCAL BOUNDS; kernels/cpu/ppr_local.h gives the same bits. L queries are stored side by side:
// state[node][lane].
#include "arguments/ppr_local_f32.h"
#include "ppr_scales.h"

namespace hopfuse {

// The largest 1 / degree of a tile.
template <int L>
HOPFUSE_DEVICE Measured scale_of_tile(const PprScales& scales, const TileRange& rows, int lane) {
    double largest = 0.0;
#pragma unroll 2
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double scale = scales.scale[scales.per_lane ? row * L + lane : row];
        largest = scale > largest ? scale : largest;
    }
    return Measured{0.0, largest};
}

// The largest value of a tile, divided by node weights.
template <int L>
HOPFUSE_DEVICE Measured largest_of_tile(const float* state, const float* attraction, const TileRange& rows, int lane) {
    float largest = 0.0f;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        const float share = attraction == nullptr ? state[at] : over_attraction(state[at], attraction[at]);
        largest = share > largest ? share : largest;
    }
    return Measured{0.0, static_cast<double>(largest)};
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Shared memory: 0 unless stated.
//
// ppr_local_scale_lL: the largest 1 / degree per lane.
//   Unit: a tile and a lane; a thread. Shared memory: 2056 bytes. Registers: <= 48. Bytes: 8 N.
// ppr_local_start_lL: writes |a - b| to `local`.
//   Unit: an entry of the state; a thread. Registers: <= 32. Bytes: 12 N L.
// ppr_local_largest_lL: the largest value per lane, divided by node weights if there are any.
//   Unit: a tile and a lane; a thread. Shared memory: 2056 bytes. Registers: <= 48. Bytes: 4 N L, and 4 N L of node weights.
#define HOPFUSE_LOCAL(L)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256)                                                       \
        ppr_local_scale_l##L(const PprScales scales, int64_t num_nodes, const JoinRoom join, double* out) { \
        HOPFUSE_TILE_AND_LANE(L);                                                                           \
        HOPFUSE_JOIN_TILES(L, scale_of_tile<L>(scales, rows, lane), join);                                  \
        put_measured<L>(measured, out);                                                                     \
    }                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                                       \
        ppr_local_start_l##L(int64_t num_nodes, const float* a, const float* b, float* local) {             \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                     \
        if (at < num_nodes * L) local[at] = fabsf(a[at] - b[at]);                                           \
    }                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256) ppr_local_largest_l##L(                               \
        const float* state, const float* attraction, int64_t num_nodes, const JoinRoom join, double* out) { \
        HOPFUSE_TILE_AND_LANE(L);                                                                           \
        HOPFUSE_JOIN_TILES(L, largest_of_tile<L>(state, attraction, rows, lane), join);                     \
        put_measured<L>(measured, out);                                                                     \
    }

HOPFUSE_LOCAL(4)
HOPFUSE_LOCAL(8)
HOPFUSE_LOCAL(16)
HOPFUSE_LOCAL(32)

#define HOPFUSE_TYPES(L)                                           \
    HOPFUSE_KERNEL_TYPE(ppr_local_scale_l##L, LargestScaleKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_local_start_l##L, LocalStartKernel);   \
    HOPFUSE_KERNEL_TYPE(ppr_local_largest_l##L, LargestKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
