// One step of iterative refinement, around the passes of ppr_f32.cu. Contract: hopfuse/ppr.h, REFINEMENT;
// kernels/cpu/ppr_refine.h gives the same bits. L queries are stored side by side: state[node][lane].
#include "arguments/ppr_refine_f32.h"
#include "ppr_scales.h"

namespace hopfuse {

// A tile's sum of deg |y|, and its largest |y| divided by the node weight.
template <int L>
HOPFUSE_DEVICE Measured measure_tile(const PprScales& scales, const float* solved, const TileRange& rows, int lane) {
    WideGrainSum moved;
    double largest = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double y = widened(fabsf(solved[row * L + lane]));
        moved.add(y * row_weight<L>(scales, row, lane));
        largest = larger(largest, over_weight<L>(scales, y, row, lane));
    }
    return Measured{moved.value(), largest};
}

// x^ + D y of a tile in float32, and the sum of what rounding loses.
template <int L>
HOPFUSE_DEVICE Measured add_tile(const PprScales& scales, bool open, const TileRange& rows, int lane, const float* x,
                                 float* solved) {
    WideGrainSum lacking;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        const double sum = fma(widened(solved[at]), row_weight<L>(scales, row, lane), widened(x[at]));
        solved[at] = open ? narrowed(sum) : x[at];
        lacking.add(fabs(sum - widened(solved[at])));
    }
    return Measured{lacking.value(), 0.0};
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Unit: a tile and a lane; a thread.
//
// ppr_refine_measure_lL: the sum of deg |y| and the largest |y| per lane. Shared memory: 2056 bytes. Registers: <= 64.
//   Bytes: 4 N L + 8 N.
// ppr_refine_end_lL: writes x^ + solved deg, computed in float64 and rounded, to `solved`; lanes that are not open get x^.
//   Sums per lane what rounding loses. Shared memory: 2056 bytes. Registers: <= 64. Bytes: 12 N L + 8 N.
#define HOPFUSE_REFINE(L)                                                                                   \
    extern "C" __global__ void __launch_bounds__(256) ppr_refine_measure_l##L(                              \
        const PprScales scales, int64_t num_nodes, const float* solved, const JoinRoom join, double* out) { \
        HOPFUSE_TILE_AND_LANE(L);                                                                           \
        HOPFUSE_JOIN_TILES(L, measure_tile<L>(scales, solved, rows, lane), join);                           \
        put_measured<L>(measured, out);                                                                     \
    }                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                                       \
        ppr_refine_end_l##L(const PprScales scales, const int32_t* open, int64_t num_nodes, const float* x, \
                            float* solved, const JoinRoom join, double* out) {                              \
        HOPFUSE_TILE_AND_LANE(L);                                                                           \
        HOPFUSE_JOIN_TILES(L, add_tile<L>(scales, open[lane] != 0, rows, lane, x, solved), join);           \
        put_measured<L>(measured, out);                                                                     \
    }

HOPFUSE_REFINE(4)
HOPFUSE_REFINE(8)
HOPFUSE_REFINE(16)
HOPFUSE_REFINE(32)

#define HOPFUSE_TYPES(L)                                               \
    HOPFUSE_KERNEL_TYPE(ppr_refine_measure_l##L, RefineMeasureKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_refine_end_l##L, RefineEndKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
