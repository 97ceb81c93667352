// What is decided about the lanes of a block after its walk: float64 steps, and how lists are settled that the certificate of x^
// leaves unproven. Contract: hopfuse/ppr.h, STOP, LOCAL BOUNDS and REFINEMENT; kernels/cpu/ppr_settle.h gives the same bits.
// The passes between are those of ppr_f32.cu, the lists those of ppr_topk_f32.cu. L queries are stored side by side:
// state[node][lane].
#include "arguments/ppr_settle_f32.h"
#include "hopfuse/ppr_settle.h"
#include "hopfuse/query_status.h"
#include "ppr_scales.h"
#include "warp.h"

namespace hopfuse {

HOPFUSE_DEVICE int32_t count_lanes(bool holds) { return __popc(__ballot_sync(ALL_LANES, holds ? 1 : 0)); }

// Whether a lane takes a float64 step, the first or another one.
HOPFUSE_DEVICE bool takes_step(const PolishArguments& a, int lane) {
    const CertifiedLanes& known = a.known;
    const PolishLanes& own = a.lanes;
    const double bound = known.bound[lane];
    bool goes_on;
    if (a.begins != 0) {
        const bool is_exhausted = known.max_iter > 0 && known.passes[lane] >= known.max_iter;
        goes_on = known.limit[lane] > 0 && known.unproven[lane] != 0 && !is_exhausted && bound > known.tol;
        own.steps[lane] = 0, own.passes[lane] = -1, own.rows[lane] = -1;
    } else {
        if (own.stays[lane] != 0) return false;
        goes_on = bound < PPR_POLISH_GAIN * own.bound[lane] && bound > known.tol;
        own.passes[lane] = own.steps[lane];
        own.steps[lane] += 1;
        own.rows[lane] = known.rows[lane];
    }
    own.bound[lane] = bound;
    own.stays[lane] = goes_on ? 0 : 1;
    return goes_on;
}

HOPFUSE_DEVICE double shortfall_of(const SettleArguments& a, int lane) {
    const int64_t row = a.known.rows[lane];
    return row < 0 ? 0.0 : a.lists.shortfall[row];
}

HOPFUSE_DEVICE int64_t longest_row(const CertifiedLanes& known, int lane) {
    return static_cast<int64_t>(known.longest_row[lane * known.longest_stride]);
}

HOPFUSE_DEVICE PassLoss loss_of(const SettlingLanes& lanes, int lane) {
    return PassLoss{lanes.share[lane], lanes.least[lane]};
}

// Plans the next look of a lane whose list is unproven. False: no pass helps.
HOPFUSE_DEVICE bool plans_look(const SettleArguments& a, int lane) {
    const CertifiedLanes& known = a.known;
    PprProgress course = {a.lanes.passes[lane], a.lanes.look[lane]};
    const int64_t more = ppr_plan_look(course, known.damping[lane], shortfall_of(a, lane), a.order != 0,
                                       longest_row(known, lane), known.max_iter);
    a.lanes.passes[lane] = course.passes;
    a.lanes.look[lane] = course.look;
    a.lanes.more[lane] = more - 1;
    return more > 0;
}

// Whether a lane's list may be settled, and how.
HOPFUSE_DEVICE bool opens(const SettleArguments& a, int lane) {
    const CertifiedLanes& known = a.known;
    const SettlingLanes& own = a.lanes;
    own.passes[lane] = known.passes[lane] + 1 + a.polish.steps[lane];
    own.look[lane] = 0, own.more[lane] = 0;
    own.zero[lane] = 0, own.one[lane] = 1.0f, own.anchor[lane] = PPR_ANCHOR;
    const bool row_factor_underflows =
        known.least != nullptr && ppr_row_factor_underflows(known.least[known.lanes + lane], known.damping[lane]);
    const bool is_bounded = known.per_degree[lane] < PPR_MOST_RHO && !row_factor_underflows;
    const bool is_final = a.polish.stays[lane] != 0;  // else its x^ changes
    return is_final && is_bounded && !(shortfall_of(a, lane) < 1.0) && plans_look(a, lane);
}

// Writes whether the answer of a lane that is not open is final. It is not if float64 steps are to follow, or if its walk ended
// with a proof that the certificate has rejected: true then.
HOPFUSE_DEVICE bool is_refused(const SettleArguments& a, int lane) {
    const int64_t row = a.known.rows[lane];
    if (row < 0) return false;
    const bool is_met = shortfall_of(a, lane) < 1.0 || a.lists.converged[row] != 0;
    const bool is_walked = a.known.walking[lane] == 0 && a.polish.stays[lane] != 0;
    const int32_t known = is_walked && (is_met || a.known.unproven[lane] != 0) ? status_complete : status_incomplete;
    a.lists.status[row] = a.lists.seed_status[lane] < known ? a.lists.seed_status[lane] : known;
    return known == status_incomplete;
}

HOPFUSE_DEVICE int64_t least_of_lanes(int64_t mine) {
    for (int step = 16; step > 0; step /= 2) {
        const int64_t other = __shfl_xor_sync(ALL_LANES, mine, step);
        mine = other < mine ? other : mine;
    }
    return mine;
}

// Counts open lanes, gives the turn to some, and adds up those that are refused. Called by a warp, a thread for a lane.
HOPFUSE_DEVICE void give_turn(const SettleArguments& a, int lane, bool open, bool refused) {
    const SettlingLanes& own = a.lanes;
    const int64_t look = open ? own.look[lane] : PPR_NEVER, next = least_of_lanes(look);
    const bool is_examined = open && look == (a.number != 0 ? a.number : next);
    const int32_t num_open = count_lanes(open), num_examined = count_lanes(is_examined);
    const int32_t num_refused = count_lanes(refused);
    if (lane < a.known.lanes) {
        own.open[lane] = open ? 1 : 0;
        own.examined[lane] = is_examined ? 1 : 0;
        own.examined_rows[lane] = is_examined ? a.known.rows[lane] : -1;
        own.around[lane] = 0, own.around_rows[lane] = -1;
    }
    if (lane != 0) return;
    own.counts->open = num_open;
    own.counts->examined = num_examined;
    own.counts->around = 0;
    own.counts->next = num_open > 0 ? next : 0;
    own.counts->refused += num_refused;
}

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

// The largest b of a tile, divided by node weights.
template <int L>
HOPFUSE_DEVICE Measured restart_of_tile(const RestArguments& a, const TileRange& rows, int lane) {
    if (rows.first >= rows.last) return Measured{0.0, 0.0};
    const int64_t tile = rows.first / PPR_TILE;
    const uint64_t word = a.restart_rows.words[tile];
    if (word == 0) return Measured{0.0, 0.0};  // whose rank nobody has written
    const float* restart = a.restart + static_cast<int64_t>(a.restart_rows.rank[tile]) * L + lane;
    float largest = 0.0f;
    for (uint64_t bits = word; bits != 0; bits &= bits - 1, restart += L) {
        const int64_t row = rows.first + __ffsll(static_cast<long long>(bits)) - 1;
        const float share =
            a.attraction == nullptr ? *restart : over_attraction(*restart, a.attraction[row * L + lane]);
        largest = share > largest ? share : largest;
    }
    return Measured{0.0, static_cast<double>(largest)};
}

// What passes over averages lose, and by how much |rho| of x^ may exceed the stored correction.
HOPFUSE_DEVICE void put_rest(const RestArguments& a, double restart, int lane) {
    const CertifiedLanes& known = a.known;
    const float weight = known.least == nullptr ? 1.0f : known.least[lane];
    const PassLoss loss =
        ppr_pass_loss(longest_row(known, lane), a.scale[known.lanes + lane], 1.0 / static_cast<double>(weight));
    a.lanes.share[lane] = loss.share, a.lanes.least[lane] = loss.least;
    a.lanes.rest[lane] = ppr_rest_of_rho(static_cast<float>(restart), known.per_degree[lane], known.slack[lane], loss,
                                         known.damping[lane]);
}

// Calls take(row, read(row)) for the rows of a tile, in order. Four are read before the first is taken, so that the loads overlap.
template <class Read, class Take>
HOPFUSE_DEVICE void each_row(const TileRange& rows, const Read& read, const Take& take) {
    constexpr int ahead = 4;
    HOPFUSE_ROLLED
    for (int64_t first = rows.first; first < rows.last; first += ahead) {
        decltype(read(first)) found[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) found[i] = read(first + i < rows.last ? first + i : first);
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (first + i < rows.last) take(first + i, found[i]);
    }
}

// What is read of a row and a lane: y, z or x^, and the degree.
struct RefinedRow {
    float y, other;
    double weight;
};

// |z - y| of a tile; the sum of deg |y|, and the largest |y| divided by the node weight.
template <int L>
HOPFUSE_DEVICE Measured measure_tile(const RefineArguments& a, const TileRange& rows, int lane) {
    WideGrainSum moved;
    double largest = 0.0;
    if (a.lanes.examined[lane] == 0) return Measured{0.0, 0.0};
    const auto read = [&](int64_t row) {
        const int64_t at = row * L + lane;
        return RefinedRow{a.solved[at], a.gap[at], row_weight<L>(a.scales, row, lane)};
    };
    each_row(rows, read, [&](int64_t row, const RefinedRow& own) {
        a.gap[row * L + lane] = fabsf(own.other - own.y);
        const double y = widened(fabsf(own.y));
        moved.add(y * own.weight);
        largest = larger(largest, over_weight<L>(a.scales, y, row, lane));
    });
    return Measured{moved.value(), largest};
}

// x^ + D y of a tile in float32, and the sum of what rounding loses.
template <int L>
HOPFUSE_DEVICE Measured add_tile(const RefineArguments& a, const TileRange& rows, int lane) {
    WideGrainSum lacking;
    if (a.lanes.examined[lane] == 0) return Measured{0.0, 0.0};
    const auto read = [&](int64_t row) {
        const int64_t at = row * L + lane;
        return RefinedRow{a.solved[at], a.x[at], row_weight<L>(a.scales, row, lane)};
    };
    each_row(rows, read, [&](int64_t row, const RefinedRow& own) {
        const double sum = fma(widened(own.y), own.weight, widened(own.other));
        const float refined = narrowed(sum);
        a.refined[row * L + lane] = refined;
        lacking.add(fabs(sum - widened(refined)));
    });
    return Measured{lacking.value(), 0.0};
}

// The certificate of x^ + D y.
HOPFUSE_DEVICE void put_refined(const RefineArguments& a, double lacking, int lane) {
    if (a.lanes.examined[lane] == 0) return;
    const CertifiedLanes& known = a.known;
    const double* const column = a.measured + lane;
    const int L = known.lanes;
    const PprCorrection found = {column[0], column[L], column[2 * L], column[3 * L], lacking};
    const PprBounds before = {known.residual[lane], known.bound[lane], known.per_degree[lane]};
    const PprRefined made =
        ppr_refined(before, a.lanes.rest[lane], found, loss_of(a.lanes, lane), known.slack[lane], known.missed[lane],
                    known.volume[lane * known.volume_stride], known.damping[lane]);
    a.lanes.residual[lane] = made.bounds.residual;
    a.lanes.bound[lane] = made.bounds.bound;
    a.lanes.per_degree[lane] = made.bounds.per_degree;
    a.lanes.refined_rest[lane] = made.rest;
}

// The largest average of a tile, divided by node weights.
template <int L>
HOPFUSE_DEVICE Measured average_of_tile(const AroundArguments& a, const TileRange& rows, int lane) {
    float largest = 0.0f;
    if (a.lanes.around[lane] == 0) return Measured{0.0, 0.0};
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        const float value = a.average[at];
        const float share = a.attraction == nullptr ? value : over_attraction(value, a.attraction[at]);
        largest = share > largest ? share : largest;
    }
    return Measured{0.0, static_cast<double>(largest)};
}

// The bound that other nodes add to a node's own.
HOPFUSE_DEVICE void put_around(const AroundArguments& a, double largest, int lane) {
    if (a.lanes.around[lane] == 0) return;
    a.lanes.per_degree[lane] =
        ppr_local_bound(largest, a.lanes.refined_rest[lane], loss_of(a.lanes, lane), a.known.damping[lane]);
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Unit: a lane; a thread of one block. Block: 32. Shared memory: 0.
//
// ppr_polish: the lanes that take a float64 power step next, at first and after each.
//   Registers: <= 64 (occupancy 25 %). Bytes: 64 a lane.
// ppr_settle_begin: the lanes whose lists passes may prove, the first look of each, and which answers are final.
//   Registers: <= 64 (occupancy 25 %). Bytes: 240 a lane.
// ppr_settle_around: the lanes whose lists local bounds may prove, of those that were examined.
//   Registers: <= 64 (occupancy 25 %). Bytes: 64 a lane.
// ppr_settle_plan: closes lanes that are proven or gain no more, and plans the next look of the others.
//   Registers: <= 64 (occupancy 25 %). Bytes: 120 a lane.
extern "C" __global__ void __launch_bounds__(32) ppr_polish(const PolishArguments a) {
    const int lane = static_cast<int>(threadIdx.x);
    const int32_t polishing = count_lanes(lane < a.known.lanes && takes_step(a, lane));
    if (lane != 0) return;
    if (a.begins != 0) *a.lanes.counts = SettlingCounts{};
    a.lanes.counts->polishing = polishing;
}

extern "C" __global__ void __launch_bounds__(32) ppr_settle_begin(const SettleArguments a) {
    const int lane = static_cast<int>(threadIdx.x);
    const bool is_open = lane < a.known.lanes && opens(a, lane);
    const bool refused = lane < a.known.lanes && !is_open && is_refused(a, lane);
    if (lane == 0) a.lanes.counts->refused = 0;
    give_turn(a, lane, is_open, refused);
}

extern "C" __global__ void __launch_bounds__(32) ppr_settle_around(const SettleArguments a) {
    const int lane = static_cast<int>(threadIdx.x);
    const SettlingLanes& own = a.lanes;
    bool looks = false;
    if (lane < a.known.lanes && own.examined[lane] != 0) {
        const double shortfall = shortfall_of(a, lane);
        const PprProgress course = {own.passes[lane], own.look[lane]};
        looks = !(shortfall < 1.0) && ppr_may_look_around(shortfall) && ppr_allows(course, a.known.max_iter, 1);
    }
    const int32_t around = count_lanes(looks);
    if (looks) {
        own.passes[lane] += 1;
        own.around[lane] = 1;
        own.around_rows[lane] = a.known.rows[lane];
    }
    if (lane == 0) own.counts->around = around;
}

extern "C" __global__ void __launch_bounds__(32) ppr_settle_plan(const SettleArguments a) {
    const int lane = static_cast<int>(threadIdx.x);
    bool is_open = lane < a.known.lanes && a.lanes.open[lane] != 0, refused = false;
    if (is_open && a.lanes.examined[lane] != 0) {
        is_open = !(shortfall_of(a, lane) < 1.0) && plans_look(a, lane);
        refused = !is_open && is_refused(a, lane);
    }
    give_turn(a, lane, is_open, refused);
}

// Every kernel: Block: 256. Unit: a tile and a lane; a thread. Without a lane for it, it does nothing.
//
// ppr_settle_scale_lL: the largest 1 / degree per lane. Shared memory: 2056 bytes. Registers: <= 48. Bytes: 8 N.
// ppr_settle_rest_lL: what passes over averages lose, and by how much |rho| of x^ may exceed the stored correction.
//   Shared memory: 2056 bytes. Registers: <= 64. Bytes: 12 a tile, 4 L a row that restarts, and 4 L of its node weights.
// ppr_refine_measure_lL: |z - y|, the sum of deg |y| and the largest |y| per lane.
//   Shared memory: 2056 bytes. Registers: <= 64. Bytes: 12 N L + 8 N.
// ppr_refine_end_lL: writes x^ + y deg, computed in float64 and rounded, to `refined`, and its certificate, which includes
//   what rounding loses. Shared memory: 2056 bytes. Registers: <= 64. Bytes: 12 N L + 8 N.
// ppr_refine_around_lL: the bound of nodes whose neighbours have these averages.
//   Shared memory: 2056 bytes. Registers: <= 64. Bytes: 4 N L, and 4 N L of node weights.
#define HOPFUSE_SETTLE(L)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) ppr_settle_scale_l##L(                                         \
        const PprScales scales, int64_t num_nodes, const SettlingCounts* counts, const JoinRoom join, double* out) { \
        if (counts->open == 0) return;                                                                               \
        HOPFUSE_TILE_AND_LANE(L);                                                                                    \
        HOPFUSE_JOIN_TILES(L, scale_of_tile<L>(scales, rows, lane), join);                                           \
        put_measured<L>(measured, out);                                                                              \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256) ppr_settle_rest_l##L(const RestArguments a) {                  \
        if (a.lanes.counts->open == 0) return;                                                                       \
        const int64_t num_nodes = a.num_nodes;                                                                       \
        HOPFUSE_TILE_AND_LANE(L);                                                                                    \
        HOPFUSE_JOIN_TILES(L, restart_of_tile<L>(a, rows, lane), a.join);                                            \
        put_rest(a, measured.largest, static_cast<int>(threadIdx.x));                                                \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256) ppr_refine_measure_l##L(const RefineArguments a) {             \
        if (a.lanes.counts->examined == 0) return;                                                                   \
        const int64_t num_nodes = a.num_nodes;                                                                       \
        HOPFUSE_TILE_AND_LANE(L);                                                                                    \
        HOPFUSE_JOIN_TILES(L, measure_tile<L>(a, rows, lane), a.join);                                               \
        put_measured<L>(measured, a.measured + 2 * L);                                                               \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_refine_end_l##L(const RefineArguments a) {              \
        if ((a.again != 0 ? a.lanes.counts->around : a.lanes.counts->examined) == 0) return;                         \
        const int64_t num_nodes = a.num_nodes;                                                                       \
        HOPFUSE_TILE_AND_LANE(L);                                                                                    \
        HOPFUSE_JOIN_TILES(L, add_tile<L>(a, rows, lane), a.join);                                                   \
        if (a.again == 0) put_refined(a, measured.sum, static_cast<int>(threadIdx.x));                               \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256) ppr_refine_around_l##L(const AroundArguments a) {              \
        if (a.lanes.counts->around == 0) return;                                                                     \
        const int64_t num_nodes = a.num_nodes;                                                                       \
        HOPFUSE_TILE_AND_LANE(L);                                                                                    \
        HOPFUSE_JOIN_TILES(L, average_of_tile<L>(a, rows, lane), a.join);                                            \
        put_around(a, measured.largest, static_cast<int>(threadIdx.x));                                              \
    }

HOPFUSE_SETTLE(4)
HOPFUSE_SETTLE(8)
HOPFUSE_SETTLE(16)
HOPFUSE_SETTLE(32)

#define HOPFUSE_TYPES(L)                                           \
    HOPFUSE_KERNEL_TYPE(ppr_settle_scale_l##L, ScaleOfRowsKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_settle_rest_l##L, RestKernel);         \
    HOPFUSE_KERNEL_TYPE(ppr_refine_measure_l##L, RefineKernel);    \
    HOPFUSE_KERNEL_TYPE(ppr_refine_end_l##L, RefineKernel);        \
    HOPFUSE_KERNEL_TYPE(ppr_refine_around_l##L, AroundKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
HOPFUSE_KERNEL_TYPE(ppr_polish, PolishKernel);
HOPFUSE_KERNEL_TYPE(ppr_settle_begin, SettleKernel);
HOPFUSE_KERNEL_TYPE(ppr_settle_around, SettleKernel);
HOPFUSE_KERNEL_TYPE(ppr_settle_plan, SettleKernel);
