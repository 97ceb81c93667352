// One step of iterative refinement, around the passes of ppr_f32.cu. Contract: hopfuse/ppr.h, REFINEMENT;
// kernels/cpu/ppr_refine.h gives the same bits. L queries lie side by side: state[node][lane].
#include "ppr_scales.h"

namespace hopfuse {

// x^ + e of a tile, over degrees, as float32 numbers and what these lack, which is summed.
template <int L>
HOPFUSE_DEVICE void split_tile(const Scales& scales, bool open, int64_t num_nodes, int64_t tile, int lane, float* x,
                               float* solved, double* tiles) {
    const TileRange rows(tile, num_nodes);
    double lacking = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        const double high = static_cast<double>(x[at]);
        const double sum = open ? fma(static_cast<double>(solved[at]), scales.weight<L>(row, lane), high) : high;
        x[at] = static_cast<float>(sum);
        solved[at] = static_cast<float>(sum - static_cast<double>(x[at]));
        lacking = lacking + to_grain(fabs(static_cast<double>(solved[at])), PPR_ANCHOR);
    }
    *tile_at<L>(tiles, tile, tile_sum, lane) = lacking;
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Shared memory: 0.
//
// ppr_refine_start_lL: the walk's start: current = correction, which lanes that are not open lose, and next = 0.
//   Unit: an entry of the state; a thread. Registers: <= 32. Bytes: 16 N L.
// ppr_refine_end_lL: x^ + solved deg in float64, rounded to x^, what that lacks to `solved`, and its sum of each tile;
//   lanes that are not open keep x^. Unit: a tile and a lane; a thread. Registers: <= 64. Bytes: 16 N L + 8 N.
#define HOPFUSE_REFINE(L)                                                                                       \
    extern "C" __global__ void __launch_bounds__(256) ppr_refine_start_l##L(                                    \
        const int32_t* open, int64_t num_nodes, float* correction, float* current, float* next) {               \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                         \
        if (at >= num_nodes * L) return;                                                                        \
        const float start = correction[at] * (open[at % L] != 0 ? 1.0f : 0.0f);                                 \
        correction[at] = current[at] = start;                                                                   \
        next[at] = 0.0f;                                                                                        \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        ppr_refine_end_l##L(HOPFUSE_SCALES, const int32_t* open, int64_t num_nodes, float* even, float* odd,    \
                            const int64_t* last_pass, float* solved, double* tiles) {                           \
        HOPFUSE_TILE_AND_LANE(L);                                                                               \
        HOPFUSE_MAKE_SCALES;                                                                                    \
        split_tile<L>(scales, open[lane] != 0, num_nodes, tile, lane, *last_pass % 2 == 0 ? even : odd, solved, \
                      tiles);                                                                                   \
    }

HOPFUSE_REFINE(4)
HOPFUSE_REFINE(8)
HOPFUSE_REFINE(16)
HOPFUSE_REFINE(32)
