// The volume of each lane's own graph, which sets its pass limit. Contract: hopfuse/ppr.h, SUMS; kernels/cpu/ppr_degrees.h
// gives the same bits. L queries lie side by side: scale[node][lane].
#include "hopfuse/ppr_sum.h"
#include "ppr_scales.h"

namespace hopfuse {

// A node's term: a_v D_v where it walks, else 0.
template <int L>
HOPFUSE_DEVICE double volume_term(const Scales& scales, int64_t row, int lane) {
    const int64_t at = row * L + lane;
    const double share = scales.attraction == nullptr ? 1.0 : static_cast<double>(scales.attraction[at]);
    return scales.scale[at] > 0.0 ? share * scales.unscale[at] : 0.0;
}

// Of a tile the sum of its terms by the grain of `anchor`; without one their largest, and how many are above 0.
template <int L>
HOPFUSE_DEVICE void volume_of_tile(const Scales& scales, const double* anchor, int64_t num_nodes, int64_t tile,
                                   int lane, double* tiles) {
    const TileRange rows(tile, num_nodes);
    double sum = 0.0, largest = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double term = volume_term<L>(scales, row, lane);
        sum = sum + (anchor == nullptr ? (term > 0.0 ? 1.0 : 0.0) : to_grain(term, anchor[lane]));
        largest = term > largest ? term : largest;
    }
    *tile_at<L>(tiles, tile, tile_sum, lane) = sum;
    *tile_at<L>(tiles, tile, tile_largest, lane) = largest;
}

}  // namespace hopfuse

using namespace hopfuse;

// ppr_volume_tiles_lL: of each tile the sum of degrees of rows that walk, or what says by which grain they are added.
//   Unit: a tile and a lane; a thread. Block: 256. Shared memory: 0. Registers: <= 64. Bytes: 16 N L, 4 N L of node weights.
// ppr_volume_lL: the same of all tiles: each lane's volume where `anchor` is given, else its anchor.
//   Unit: a lane; a warp, all in one block. Block: 32 L. Shared memory: 0. Registers: <= 64. Bytes: 16 L tiles.
#define HOPFUSE_VOLUME(L)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                          \
        ppr_volume_tiles_l##L(HOPFUSE_SCALES, const double* anchor, int64_t num_nodes, double* tiles) {        \
        HOPFUSE_TILE_AND_LANE(L);                                                                              \
        HOPFUSE_MAKE_SCALES;                                                                                   \
        volume_of_tile<L>(scales, anchor, num_nodes, tile, lane, tiles);                                       \
    }                                                                                                          \
    extern "C" __global__ void __launch_bounds__(32 * L)                                                       \
        ppr_volume_l##L(const double* tiles, int64_t num_tiles, const double* anchor, double* out) {           \
        const int query = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;       \
        const double sum = join_tiles<L>(tiles, num_tiles, tile_sum, query, lane, Sum{});                      \
        const double largest = join_tiles<L>(tiles, num_tiles, tile_largest, query, lane, Largest{});          \
        if (lane == 0)                                                                                         \
            out[query] = anchor == nullptr ? ppr_volume_anchor(largest, sum) : ppr_volume(sum, anchor[query]); \
    }

HOPFUSE_VOLUME(4)
HOPFUSE_VOLUME(8)
HOPFUSE_VOLUME(16)
HOPFUSE_VOLUME(32)
