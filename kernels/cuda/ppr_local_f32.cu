// Bounds of each node's error that look one step around it, then two; the passes between are those of ppr_f32.cu. Contract:
// hopfuse/ppr.h, LOCAL BOUNDS; kernels/cpu/ppr_local.h gives the same bits. L queries lie side by side: state[node][lane].
#include "ppr_scales.h"

namespace hopfuse {

// The largest 1 / degree of a tile.
template <int L>
HOPFUSE_DEVICE void scale_of_tile(const Scales& scales, int64_t num_nodes, int64_t tile, int lane, double* tiles) {
    const TileRange rows(tile, num_nodes);
    double largest = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double scale = scales.scale[scales.per_lane ? row * L + lane : row];
        largest = scale > largest ? scale : largest;
    }
    *tile_at<L>(tiles, tile, tile_sum, lane) = 0.0;
    *tile_at<L>(tiles, tile, tile_largest, lane) = largest;
}

// The largest value of a tile, over the node weights.
template <int L>
HOPFUSE_DEVICE void largest_of_tile(const float* state, const float* attraction, int64_t num_nodes, int64_t tile,
                                    int lane, double* tiles) {
    const TileRange rows(tile, num_nodes);
    LargestShare largest = {0.0f, 1.0f};
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        largest.take(state[at], attraction == nullptr ? 1.0f : attraction[at]);
    }
    *tile_at<L>(tiles, tile, tile_sum, lane) = 0.0;
    *tile_at<L>(tiles, tile, tile_largest, lane) = static_cast<double>(largest.value());
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Shared memory: 0.
//
// ppr_local_scale_lL: the largest 1 / degree of each tile.
//   Unit: a tile and a lane; a thread. Registers: <= 48. Bytes: 8 N.
// ppr_local_start_lL: |a - b| to `local`, or |a| where b is null.
//   Unit: an entry of the state; a thread. Registers: <= 32. Bytes: 12 N L.
// ppr_local_step_lL: adds to `local` what the average of a node's neighbours gives.
//   Unit: an entry of the state; a thread. Registers: <= 64. Bytes: 12 N L, and 4 N L of node weights.
// ppr_local_largest_lL: the largest value of each tile, over the node weights where there are any.
//   Unit: a tile and a lane; a thread. Registers: <= 48. Bytes: 4 N L, and as many of node weights.
#define HOPFUSE_LOCAL(L)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        ppr_local_scale_l##L(HOPFUSE_SCALES, int64_t num_nodes, double* tiles) {                                \
        HOPFUSE_TILE_AND_LANE(L);                                                                               \
        HOPFUSE_MAKE_SCALES;                                                                                    \
        scale_of_tile<L>(scales, num_nodes, tile, lane, tiles);                                                 \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        ppr_local_start_l##L(int64_t num_nodes, const float* a, const float* b, float* local) {                 \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                         \
        if (at < num_nodes * L) local[at] = fabsf(b == nullptr ? a[at] : a[at] - b[at]);                        \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256) ppr_local_step_l##L(                                      \
        int64_t num_nodes, const float* average, const float* attraction, const int64_t* longest_row,           \
        const double* largest_scale, const double* largest_inverse, const double* damping, float* local) {      \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                         \
        if (at >= num_nodes * L) return;                                                                        \
        const int lane = static_cast<int>(at % L);                                                              \
        PassLoss loss = ppr_pass_loss(longest_row[lane], largest_scale[lane], largest_inverse[lane]);           \
        if (attraction != nullptr) loss.least = loss.least * static_cast<double>(attraction[at]);               \
        local[at] = ppr_local_above(local[at], average[at], loss, damping[lane]);                               \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        ppr_local_largest_l##L(const float* state, const float* attraction, int64_t num_nodes, double* tiles) { \
        HOPFUSE_TILE_AND_LANE(L);                                                                               \
        largest_of_tile<L>(state, attraction, num_nodes, tile, lane, tiles);                                    \
    }

HOPFUSE_LOCAL(4)
HOPFUSE_LOCAL(8)
HOPFUSE_LOCAL(16)
HOPFUSE_LOCAL(32)
