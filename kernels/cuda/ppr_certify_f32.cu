// Computes the returned scores and their certificate from the walk's last iterate, in float64. Contract: hopfuse/ppr.h;
// kernels/cpu/ppr_certify.h gives the same bits. L queries are stored side by side: state[node][lane].
#include "arguments/ppr_certify_f32.h"
#include "ppr_scales.h"

namespace hopfuse {

// What is read of a row and a lane.
struct RowState {
    float y;
    double weight;
};

// Calls take(row, read(row)) for the rows of a tile, in order. Several are read before the first is taken, so that the loads
// overlap.
template <class Read, class Take>
HOPFUSE_DEVICE void each_row(const TileRange& rows, const Read& read, const Take& take) {
    constexpr int ahead = 4;
    HOPFUSE_ROLLED
    for (int64_t first = rows.first; first < rows.last; first += ahead) {
        RowState states[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) states[i] = read(first + i < rows.last ? first + i : first);
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (first + i < rows.last) take(first + i, states[i]);
    }
}

template <int L>
HOPFUSE_DEVICE Measured mass_of_tile(const float* state, const PprScales& scales, const TileRange& rows, int lane) {
    WideGrainSum sum;
    const auto read = [&](int64_t row) { return RowState{state[row * L + lane], row_weight<L>(scales, row, lane)}; };
    each_row(rows, read,
             [&](int64_t, const RowState& own) { sum.add(widened(own.y > 0.0f ? own.y : 0.0f) * own.weight); });
    return Measured{sum.value(), 0.0};
}

template <int L>
HOPFUSE_DEVICE Measured scale_tile(const float* state, float* x, const PprScales& scales, const double* eta,
                                   const double* total, bool clamps, bool loses, const TileRange& rows, int lane) {
    const double factor = !clamps || total == nullptr ? 1.0 : ppr_factor(total[lane]);
    const auto read = [&](int64_t row) { return RowState{state[row * L + lane], row_weight<L>(scales, row, lane)}; };
    if (total != nullptr)
        each_row(rows, read, [&](int64_t row, const RowState& own) {
            const float y = !clamps || own.y > 0.0f ? own.y : 0.0f;
            x[row * L + lane] = narrowed(widened(y) * own.weight * factor);
        });
    if (!loses) return Measured{0.0, 0.0};
    WideGrainSum sum;
    HOPFUSE_ROLLED
    for (int64_t row = rows.first; row < rows.last; ++row)
        sum.add(fabs(widened(x[row * L + lane]) * lost_share<L>(scales, eta, row, lane)));
    return Measured{sum.value(), 0.0};
}

HOPFUSE_DEVICE bool is_kept(const PprKept& kept, int lane) {
    return kept.open[lane] == 0 && (kept.passes == nullptr || kept.passes[lane] == kept.number);
}

template <int L>
HOPFUSE_DEVICE void copy_tile(const float* from, float* to, const TileRange& rows, int lane) {
#pragma unroll 4
    for (int64_t at = rows.first * L + lane; at < rows.last * L; at += L) to[at] = from[at];
}

// The part of an entry's factor that is the same in all lanes: w, and 1 / deg of its source if that is.
HOPFUSE_DEVICE double shared_factor(const ResidualArguments& t, int64_t e, int64_t u) {
    const double w = t.weight == nullptr ? 1.0 : widened(t.weight[e]);
    if (t.scales.per_lane) return w;
    const int type = t.edge_type == nullptr ? 0 : t.edge_type[e];
    return w * t.scales.scale[t.scales.per_type ? u * t.scales.num_types + type : u];
}

template <int L>
HOPFUSE_DEVICE double add_entry(const ResidualArguments& t, const float* x, int64_t e, int64_t u, double factor,
                                int lane, double acc) {
    if (t.scales.per_lane || t.eta != nullptr) {
        const int type = t.edge_type == nullptr ? 0 : t.edge_type[e];
        const int64_t at = t.scales.per_type ? u * t.scales.num_types + type : u;
        if (t.scales.per_lane) factor = factor * t.scales.scale[at * L + lane];
        if (t.eta != nullptr) factor = factor * t.eta[type * L + lane];
    }
    return fma(factor, widened(x[u * L + lane]), acc);
}

// The sum over entries begin .. end - 1, at most a segment, by L neighbouring threads. Each computes every L-th shared
// factor, because float64 arithmetic is slow on most GPUs.
template <int L>
HOPFUSE_DEVICE double segment_sum(const ResidualArguments& t, const float* x, int64_t begin, int64_t end, int lane) {
    const unsigned team = L == 32 ? 0xffffffffu : ((1u << (L % 32)) - 1) << (threadIdx.x % 32 / L * L);
    double acc = 0.0;
    for (int64_t first = begin; first < end; first += L) {
        const int64_t own = first + lane;
        const int32_t source = own < end ? t.indices[own] : 0;
        const double factor = own < end ? shared_factor(t, own, source) : 0.0;
        const int count = end - first < L ? static_cast<int>(end - first) : L;
#pragma unroll 4
        for (int i = 0; i < count; ++i) {
            const int64_t u = __shfl_sync(team, source, i, L);
            acc = add_entry<L>(t, x, first + i, u, __shfl_sync(team, factor, i, L), lane, acc);
        }
    }
    return acc;
}

// Writes the sums of the segments of long rows.
template <int L>
HOPFUSE_DEVICE void sum_segments(const ResidualArguments& t) {
    const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t segment = at / L;
    if (segment >= t.num_segments) return;
    const int lane = static_cast<int>(at % L);
    const LongRows& r = t.segments;
    const float* const x = state_of(t.iterate);
    if (r.allowed != nullptr)
        return masked_segment<L>(r, segment, lane, t.partial, [&](int64_t e, double acc) {
            const int64_t u = t.indices[e];
            return add_entry<L>(t, x, e, u, shared_factor(t, e, u), lane, acc);
        });
    t.partial[segment * L + lane] = segment_sum<L>(t, x, r.begin[segment], r.end[segment], lane);
}

template <int L>
HOPFUSE_DEVICE double walked_sum(const ResidualArguments& t, const float* x, int64_t row, int lane) {
    const int64_t begin = t.indptr[row], end = t.indptr[row + 1];
    if (end - begin <= PPR_SEGMENT) return 0.0 + segment_sum<L>(t, x, begin, end, lane);
    return sum_of_segments<L>(t.segments, index_of_row(t.long_rows, row), lane, t.partial);
}

// r_v = (d P' x^ + (1 - d + d m) s - x^)_v.
template <int L>
HOPFUSE_DEVICE double residual_of_row(const ResidualArguments& t, const float* x, int64_t row, int lane) {
    const PprScales& scales = t.scales;
    const double d = t.certified.damping[lane], back = 1.0 - d + d * t.lost[lane];
    double walked = d * walked_sum<L>(t, x, row, lane);
    if (scales.attraction != nullptr) {
        walked = walked * widened(scales.attraction[row * L + lane]);
    } else if (scales.per_lane) {  // edges into nodes that may not hold mass are ignored
        const double open = scales.unscale[row * L + lane];
        walked = scales.per_type ? walked * open : double_to_bits(open) != 0 ? walked : 0.0;
    }
    double r = walked - widened(x[row * L + lane]);
    if (holds_row(t.restart_rows.words, row)) r = fma(back, t.restart[index_of_row(t.restart_rows, row) * L + lane], r);
    return r;
}

// For a block's tile and a thread's lane: the sum of |r|, and the largest (2 slack x + |r|) / deg, over the node weight.
template <int L>
HOPFUSE_DEVICE Measured residual(const ResidualArguments& t) {
    const PprScales& scales = t.scales;
    const float* const x = state_of(t.iterate);
    const TileRange rows(blockIdx.x, t.num_nodes);
    const int lane = static_cast<int>(threadIdx.x) % L, group = static_cast<int>(threadIdx.x) / L;
    const int groups = static_cast<int>(blockDim.x) / L;
    const double grown_by = 2.0 * t.certified.slack[lane];
    WideGrainSum sum;
    double largest = 0.0;
    for (int64_t row = rows.first + group; row < rows.last; row += groups) {
        const double r = residual_of_row<L>(t, x, row, lane);
        const int64_t at = row * L + lane;
        if (t.improved != nullptr) t.improved[at] = narrowed(widened(x[at]) + r);
        if (t.correction != nullptr) t.correction[at] = narrowed(r * scales.scale[scales.per_lane ? at : row]);
        sum.add(fabs(r));
        if (t.symmetric == 0) continue;
        // `improved` is a separate state: x^ does not change.
        const double grown = fma(grown_by, widened(fabsf(x[at])), fabs(r));
        const double share = over_weight<L>(scales, grown * scales.scale[scales.per_lane ? at : row], row, lane);
        largest = larger(largest, share);
    }
    return Measured{sum.value(), largest};
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Shared memory: 0 unless stated.
//
// ppr_mass_lL: the sum of max(y, 0) deg per lane. Unit: a tile and a lane; a thread. Shared memory: 2056 bytes.
//   Registers: <= 64. Bytes: 4 N L.
// ppr_scale_lL: x^ = fl(max(y, 0) deg / total) if totals are given, fl(y deg) in lanes that a proof ended, in the first
//   buffer, and each lane's lost mass.
//   Unit: a tile and a lane; a thread. Shared memory: 2056 bytes. Registers: <= 64. Bytes: 8 N L.
// ppr_residual_segments_lL: the sums of the segments of long rows, for ppr_residual.
//   Unit: a segment and a lane; a thread. Registers: <= 64. Bytes: per segment 64 (12 + w) + 64 * 4 L gathered, 8 L written.
// ppr_residual_lL: the residual of x^ and each lane's bounds that follow from it and, if they are not null,
//   fl(x^ + r) in `improved` and fl(r / deg) in `correction`. Nothing where `left` is given and 0.
//   Unit: a tile; a block. Shared memory: 2056 bytes. Registers: <= 64.
//   Bytes: nnz (4 + w + 8) + 4 L nnz gathered + 8 N + 8 N L.
// ppr_keep_lL: copies `from` to lanes that are kept. Unit: a tile and a lane; a thread. Registers: <= 40. Bytes: 8 N L.
// ppr_scores_lL: writes rows of `scores` (lanes, N), in the caller's node order. Unit: a score. Registers: <= 32.
//   Bytes: 8 N L + 4 N.
#define HOPFUSE_CERTIFY(L)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256) ppr_mass_l##L(                                                   \
        const PprScales scales, int64_t num_nodes, const PprIterate iterate, const JoinRoom join, double* mass) {      \
        HOPFUSE_TILE_AND_LANE(L);                                                                                      \
        HOPFUSE_JOIN_TILES(L, mass_of_tile<L>(state_of(iterate), scales, rows, lane), join);                           \
        mass[threadIdx.x] = ppr_sum(measured.sum);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ppr_scale_l##L(                                                  \
        const PprScales scales, const double* eta, const double* total, const int32_t* unproven, const int32_t* keeps, \
        int64_t num_nodes, const PprIterate iterate, const JoinRoom join, double* lost) {                              \
        HOPFUSE_TILE_AND_LANE(L);                                                                                      \
        HOPFUSE_JOIN_TILES(L,                                                                                          \
                           scale_tile<L>(state_of(iterate), iterate.even, scales, eta, total, unproven[lane] != 0,     \
                                         keeps[lane] == 0, rows, lane),                                                \
                           join);                                                                                      \
        lost[threadIdx.x] = ppr_sum(measured.sum);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_residual_segments_l##L(const ResidualArguments a) {       \
        if (a.left == nullptr || *a.left != 0) sum_segments<L>(a);                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_residual_l##L(const ResidualArguments a) {                \
        if (a.left != nullptr && *a.left == 0) return;                                                                 \
        HOPFUSE_JOIN_TILES(L, hopfuse::residual<L>(a), a.join);                                                        \
        const int query = static_cast<int>(threadIdx.x);                                                               \
        const Certificate own = certificate_of(a.certified, measured, query);                                          \
        a.residual[query] = own.residual;                                                                              \
        a.bound[query] = own.bound;                                                                                    \
        a.per_degree[query] = own.per_degree;                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_keep_l##L(const float* from, float* to, const PprKept kept, int64_t num_nodes) {                           \
        HOPFUSE_TILE_AND_LANE(L);                                                                                      \
        if (is_kept(kept, lane)) copy_tile<L>(from, to, rows, lane);                                                   \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ppr_scores_l##L(                                                 \
        const PprIterate iterate, const int32_t* internal_of, int64_t num_nodes, int lanes, float* scores) {           \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at >= num_nodes * lanes) return;                                                                           \
        const float* const x = state_of(iterate);                                                                      \
        scores[at] = x[static_cast<int64_t>(internal_of[at % num_nodes]) * L + at / num_nodes];                        \
    }

HOPFUSE_CERTIFY(4)
HOPFUSE_CERTIFY(8)
HOPFUSE_CERTIFY(16)
HOPFUSE_CERTIFY(32)

#define HOPFUSE_TYPES(L)                                             \
    HOPFUSE_KERNEL_TYPE(ppr_mass_l##L, MassKernel);                  \
    HOPFUSE_KERNEL_TYPE(ppr_scale_l##L, ScaleKernel);                \
    HOPFUSE_KERNEL_TYPE(ppr_residual_segments_l##L, ResidualKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_residual_l##L, ResidualKernel);          \
    HOPFUSE_KERNEL_TYPE(ppr_keep_l##L, KeepKernel);                  \
    HOPFUSE_KERNEL_TYPE(ppr_scores_l##L, ScoresKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
