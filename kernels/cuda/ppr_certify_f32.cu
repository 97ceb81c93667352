// Computes the returned scores and their certificate from the walk's last iterate, in float64. Contract: hopfuse/ppr.h;
// kernels/cpu/ppr_certify.h gives the same bits. L queries are stored side by side: state[node][lane].
#include "arguments/ppr_certify_f32.h"
#include "ppr_scales.h"
#include "quads.h"

namespace hopfuse {

// Joins the sums of a block's threads, each of a quad; the first L threads get a lane's. Called by whole blocks.
template <int L>
HOPFUSE_DEVICE Measured sum_of_block(const WideGrainSum (&sum)[4], double* values) {
    double sums[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = sum[i].value();
    return Measured{join_quads<L>(sums, values, Sum{}), 0.0};
}

// Calls take(row, y, deg) for the rows of a thread, in order, with a quad of the state and of degrees. `Ahead` rows are read before the
// first is taken, so that the loads overlap.
template <int L, int Ahead, bool PerLane, class Take>
HOPFUSE_DEVICE void each_row(const float* state, const double* weights, int64_t num_nodes, const Take& take) {
    const QuadRows<L> rows;
    HOPFUSE_ROLLED
    for (uint32_t first = rows.first; first < num_nodes; first += Ahead * rows.stride) {
        Quad<float> y[Ahead];
        Quad<double> weight[Ahead];
#pragma unroll
        for (int i = 0; i < Ahead; ++i) {
            const int64_t row = first + i * rows.stride < num_nodes ? first + i * rows.stride : first;
            y[i] = read_quad(state + row * L + rows.at);
            if constexpr (PerLane) weight[i] = read_quad(weights + row * L + rows.at);
            else weight[i] = same_in_quad(weights == nullptr ? 1.0 : weights[row]);
        }
#pragma unroll
        for (int i = 0; i < Ahead; ++i)
            if (first + i * rows.stride < num_nodes) take(first + i * rows.stride, y[i], weight[i]);
    }
}

// The same with the degrees of `scales`.
template <int L, class Take>
HOPFUSE_DEVICE void each_row(const float* state, const PprScales& scales, int64_t num_nodes, const Take& take) {
    if (scales.per_lane && scales.unscale != nullptr) each_row<L, 2, true>(state, scales.unscale, num_nodes, take);
    else each_row<L, 4, false>(state, scales.unscale, num_nodes, take);
}

// The sums of max(y, 0) deg.
template <int L>
HOPFUSE_DEVICE Measured mass(const PprScales& scales, int64_t num_nodes, const float* state, double* values) {
    WideGrainSum sum[4];
    each_row<L>(state, scales, num_nodes, [&](int64_t, const Quad<float>& y, const Quad<double>& weight) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i].add(widened(y[i] > 0.0f ? y[i] : 0.0f) * weight[i]);
    });
    return sum_of_block<L>(sum, values);
}

// How the states of lanes become x^, in shared memory.
struct ScaleLanes {
    double factor[32];
    bool clamps[32];  // negative numbers
    bool loses[32];   // mass, which is to be measured

    // Called by a block.
    template <int L>
    __device__ void read(const double* total, const int32_t* unproven, const int32_t* keeps) {
        const int lane = static_cast<int>(threadIdx.x);
        if (lane < L) {
            clamps[lane] = unproven[lane] != 0;
            loses[lane] = keeps[lane] == 0;
            factor[lane] = total == nullptr || unproven[lane] == 0 ? 1.0 : ppr_factor(total[lane]);
        }
        __syncthreads();
    }
};

// Scales the states if `scales_states`, into x, and sums what x^ loses.
template <int L>
HOPFUSE_DEVICE Measured scale(const PprScales& scales, const double* eta, bool scales_states, const ScaleLanes& lanes,
                              int64_t num_nodes, const float* state, float* x, double* values) {
    const int at = QuadRows<L>().at;
    const bool loses = lanes.loses[at] || lanes.loses[at + 1] || lanes.loses[at + 2] || lanes.loses[at + 3];
    if (scales_states)
        each_row<L>(state, scales, num_nodes, [&](int64_t row, const Quad<float>& y, const Quad<double>& weight) {
            Quad<float> scaled;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float kept = !lanes.clamps[at + i] || y[i] > 0.0f ? y[i] : 0.0f;
                scaled[i] = narrowed(widened(kept) * weight[i] * lanes.factor[at + i]);
            }
            write_quad(x + row * L + at, scaled);
        });
    WideGrainSum sum[4];
    each_row<L, 2, false>(x, nullptr, loses ? num_nodes : 0,
                          [&](int64_t row, const Quad<float>& own, const Quad<double>&) {
#pragma unroll
                              for (int i = 0; i < 4; ++i)
                                  if (lanes.loses[at + i])
                                      sum[i].add(fabs(widened(own[i]) * lost_share<L>(scales, eta, row, at + i)));
                          });
    return sum_of_block<L>(sum, values);
}

HOPFUSE_DEVICE void multiply(Quad<double>& own, const Quad<double>& by) {
#pragma unroll
    for (int i = 0; i < 4; ++i) own[i] = own[i] * by[i];
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

// An entry's factor in a lane: `factor` times 1 / deg of the source and eta, if they are the lane's own.
template <int L>
HOPFUSE_DEVICE double own_factor(const ResidualArguments& t, int64_t e, int64_t u, double factor, int lane) {
    const int type = t.edge_type == nullptr ? 0 : t.edge_type[e];
    const int64_t slot = t.scales.per_type ? u * t.scales.num_types + type : u;
    if (t.scales.per_lane) factor = factor * t.scales.scale[slot * L + lane];
    return t.eta == nullptr ? factor : factor * t.eta[type * L + lane];
}

// The same of lanes from `at` on.
template <int L>
HOPFUSE_DEVICE Quad<double> own_factors(const ResidualArguments& t, int64_t e, int64_t u, double factor, int at) {
    const int type = t.edge_type == nullptr ? 0 : t.edge_type[e];
    const int64_t slot = t.scales.per_type ? u * t.scales.num_types + type : u;
    Quad<double> own = same_in_quad(factor);
    if (t.scales.per_lane) multiply(own, read_quad(t.scales.scale + slot * L + at));
    if (t.eta != nullptr) multiply(own, read_quad(t.eta + type * L + at));
    return own;
}

// The sums over `count` entries from `begin` on, at most a segment, by the threads of a row's quads. They read indices together,
// each some, a step ahead, and compute as many shared factors, because float64 arithmetic is slow on most GPUs. Loads past the end
// read the last entry. Several entries of x are read before the first is added.
template <int L, bool OwnFactors>
HOPFUSE_DEVICE Quad<double> entry_sums(const ResidualArguments& t, const float* x, int64_t begin, int count, int at) {
    constexpr int quads = QUADS<L>, ahead = OwnFactors ? 2 : 4, step = quads < ahead ? ahead : quads;
    constexpr int each = step / quads;
    const unsigned team = team_of_row<L>();
    const int first_own = at / 4;
    int32_t source[each], next[each];
    Quad<double> acc = same_in_quad(0.0);
    const auto entry = [&](int i) { return begin + (i < count ? i : count - 1); };
#pragma unroll
    for (int j = 0; j < each; ++j) next[j] = count > 0 ? t.indices[entry(j * quads + first_own)] : 0;
    HOPFUSE_ROLLED
    for (int first = 0; first < count; first += step) {
        double factor[each];
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const int own = first + j * quads + first_own;
            source[j] = next[j];
            next[j] = t.indices[entry(own + step)];
            factor[j] = shared_factor(t, entry(own), source[j]);
        }
        HOPFUSE_ROLLED
        for (int part = 0; part < step && first + part < count; part += ahead) {  // one part if `each` is more than 1
            Quad<float> values[ahead];
            int32_t u[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                u[i] = __shfl_sync(team, source[i / quads], (part + i) % quads, quads);
                values[i] = read_quad(x + static_cast<int64_t>(u[i]) * L + at);
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const double all = __shfl_sync(team, factor[i / quads], (part + i) % quads, quads);
                if (first + part + i >= count) continue;
                Quad<double> own = same_in_quad(all);
                if constexpr (OwnFactors) own = own_factors<L>(t, begin + first + part + i, u[i], all, at);
#pragma unroll
                for (int k = 0; k < 4; ++k) acc[k] = fma(own[k], widened(values[i][k]), acc[k]);
            }
        }
    }
    return acc;
}

template <int L>
HOPFUSE_DEVICE Quad<double> segment_sums(const ResidualArguments& t, const float* x, int64_t begin, int count, int at) {
    if (t.scales.per_lane || t.eta != nullptr) return entry_sums<L, true>(t, x, begin, count, at);
    return entry_sums<L, false>(t, x, begin, count, at);
}

// Writes the sums of the segments of long rows: a thread has a quad or, if lanes are masked, a lane, since each has other entries.
template <int L>
HOPFUSE_DEVICE void sum_segments(const ResidualArguments& t) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const LongRows& r = t.segments;
    const float* const x = state_of(t.iterate);
    const int width = r.allowed == nullptr ? QUADS<L> : L, place = static_cast<int>(thread % width);
    const int64_t segment = thread / width;
    if (segment >= t.num_segments) return;
    if (r.allowed != nullptr)
        return masked_segment<L>(r, segment, place, t.partial, [&](int64_t e, double acc) {
            const int64_t u = t.indices[e];
            return fma(own_factor<L>(t, e, u, shared_factor(t, e, u), place), widened(x[u * L + place]), acc);
        });
    const int64_t begin = r.begin[segment];
    const Quad<double> sums = segment_sums<L>(t, x, begin, static_cast<int>(r.end[segment] - begin), 4 * place);
#pragma unroll
    for (int i = 0; i < 4; ++i) t.partial[segment * L + 4 * place + i] = sums[i];
}

// The sums of a row's entries or, if it is long, those of its segments, which the threads of the warp add: each of one lane, so that
// many are read before the first is added. Called by whole warps.
template <int L>
HOPFUSE_DEVICE Quad<double> with_segments(const ResidualArguments& t, int64_t row, bool is_long, int at,
                                          const Quad<double>& sums) {
    constexpr int ahead = 16;
    const int lane = static_cast<int>(threadIdx.x) % 32, own_quad = lane % QUADS<L>;
    Quad<double> all = sums;
    HOPFUSE_ROLLED
    for (unsigned left = __ballot_sync(WHOLE_WARP, is_long && own_quad == 0); left != 0; left &= left - 1) {
        const int leader = __ffs(static_cast<int>(left)) - 1;
        const int64_t number = index_of_row(t.long_rows, __shfl_sync(WHOLE_WARP, row, leader));
        const double own = sum_of_segments<L, double, ahead>(t.segments, number, lane % L, t.partial);
        Quad<double> lanes;
#pragma unroll
        for (int i = 0; i < 4; ++i) lanes[i] = __shfl_sync(WHOLE_WARP, own, at + i);
        if (lane - own_quad == leader) all = lanes;
    }
    return all;
}

// What a block of the residual has in shared memory: what its threads read of lanes, and what each has measured of its quad.
struct ResidualShared {
    JoinShared join;
    double damping[32], back[32], grown_by[32];
    uint64_t grains[4][JOIN_THREADS];
    double largest[4][JOIN_THREADS];

    // Called by a block.
    template <int L>
    __device__ void begin(const ResidualArguments& t) {
        const int thread = static_cast<int>(threadIdx.x);
        if (thread < L) {
            const double d = t.certified.damping[thread];
            damping[thread] = d, back[thread] = 1.0 - d + d * t.lost[thread];
            grown_by[thread] = 2.0 * t.certified.slack[thread];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) grains[i][thread] = 0, largest[i][thread] = 0.0;
        __syncthreads();
    }
    // Called by a block; the first L threads get a lane's values.
    template <int L>
    __device__ Measured end() {
        double sums[4], most[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[i] = WideGrainSum{grains[i][threadIdx.x]}.value(), most[i] = largest[i][threadIdx.x];
        const double all = join_quads<L>(sums, join.values, Sum{});
        return Measured{all, join_quads<L>(most, join.values, Largest{})};
    }
};

// Where a row's entries are.
struct RowEntries {
    int64_t begin;
    int count;  // PPR_SEGMENT + 1 if there are more

    __device__ RowEntries(const int64_t* indptr, int64_t row, int64_t num_nodes) : begin(0), count(0) {
        if (row >= num_nodes) return;
        begin = indptr[row];
        const int64_t all = indptr[row + 1] - begin;
        count = static_cast<int>(all <= PPR_SEGMENT ? all : PPR_SEGMENT + 1);
    }
};

// What a row's residual depends on besides its entries, read before their gathers; of rows after the last one, nothing.
struct ResidualRow {
    uint32_t row;
    Quad<float> x;
    bool restarts;

    template <int L>
    __device__ void read(const ResidualArguments& t, const float* state, int at) {
        if (row >= t.num_nodes) return;
        x = read_quad(state + static_cast<int64_t>(row) * L + at);
        restarts = holds_row(t.restart_rows.words, row);
    }
};

// d P' x^ of a row that has a sum; edges into nodes that may not hold mass are ignored.
template <int L>
HOPFUSE_DEVICE void attract(const PprScales& scales, Quad<double>& walked, int64_t row, int at) {
    if (scales.attraction != nullptr) {
        const Quad<float> attraction = read_quad(scales.attraction + row * L + at);
#pragma unroll
        for (int i = 0; i < 4; ++i) walked[i] = walked[i] * widened(attraction[i]);
    } else if (scales.per_lane) {
        const Quad<double> open = read_quad(scales.unscale + row * L + at);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            walked[i] = scales.per_type ? walked[i] * open[i] : double_to_bits(open[i]) != 0 ? walked[i] : 0.0;
    }
}

// r_v = (d P' x^ + (1 - d + d m) s - x^)_v from the sum over the row's entries, and what is made of it.
template <int L>
HOPFUSE_DEVICE void end_row(const ResidualArguments& t, ResidualShared& shared, const ResidualRow& own, int at,
                            const Quad<double>& sums) {
    const PprScales& scales = t.scales;
    const int64_t row = own.row, place = row * L + at;
    Quad<double> walked;
#pragma unroll
    for (int i = 0; i < 4; ++i) walked[i] = shared.damping[at + i] * sums[i];
    attract<L>(scales, walked, row, at);
    Quad<double> r;
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = walked[i] - widened(own.x[i]);
    if (own.restarts) {
        const Quad<double> s = read_quad(t.restart + index_of_row(t.restart_rows, row) * L + at);
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = fma(shared.back[at + i], s[i], r[i]);
    }
    if (t.improved != nullptr) {
        Quad<float> improved;
#pragma unroll
        for (int i = 0; i < 4; ++i) improved[i] = narrowed(widened(own.x[i]) + r[i]);
        write_quad(t.improved + place, improved);
    }
    Quad<double> scale = same_in_quad(0.0);
    if (t.symmetric != 0) scale = scales.per_lane ? read_quad(scales.scale + place) : same_in_quad(scales.scale[row]);
    if (t.correction != nullptr) {
        Quad<float> correction;
#pragma unroll
        for (int i = 0; i < 4; ++i) correction[i] = narrowed(r[i] * scale[i]);
        write_quad(t.correction + place, correction);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        WideGrainSum sum = {shared.grains[i][threadIdx.x]};
        sum.add(fabs(r[i]));
        shared.grains[i][threadIdx.x] = sum.grains;
        if (t.symmetric == 0) continue;
        // `improved` is a separate state: x^ does not change.
        const double grown = fma(shared.grown_by[at + i], widened(fabsf(own.x[i])), fabs(r[i]));
        double& largest = shared.largest[i][threadIdx.x];
        largest = larger(largest, over_weight<L>(scales, grown * scale[i], row, at + i));
    }
}

// For a block's rows and a lane: the sum of |r|, and the largest (2 slack x + |r|) / deg, over the node weight.
template <int L>
HOPFUSE_DEVICE Measured residual(const ResidualArguments& t, ResidualShared& shared) {
    const float* const x = state_of(t.iterate);
    const QuadRows<L> rows;
    shared.begin<L>(t);
    RowEntries entries(t.indptr, rows.first, t.num_nodes);
    HOPFUSE_ROLLED
    for (uint32_t row = rows.first; __any_sync(WHOLE_WARP, row < t.num_nodes); row += rows.stride) {
        const RowEntries next(t.indptr, row + rows.stride, t.num_nodes);
        ResidualRow own = {row, {}, false};
        own.read<L>(t, x, rows.at);
        const bool is_long = entries.count > PPR_SEGMENT;
        const Quad<double> entry_sums = segment_sums<L>(t, x, entries.begin, is_long ? 0 : entries.count, rows.at);
        const Quad<double> sums = with_segments<L>(t, row, is_long, rows.at, entry_sums);
        if (row < t.num_nodes) end_row<L>(t, shared, own, rows.at, sums);
        entries = next;
    }
    return shared.end<L>();
}

// Copies lanes 0 .. lanes - 1 of a block's nodes to rows of `scores`, through shared memory, which takes a line for each lane: a
// thread reads a quad of a node, and writes a lane of every node.
template <int L>
HOPFUSE_DEVICE void write_scores(const float* x, const int32_t* internal_of, int64_t num_nodes, int lanes,
                                 float (*transposed)[SCORES_OF_BLOCK / L + 1], float* scores) {
    constexpr int nodes = SCORES_OF_BLOCK / L, at_once = 256 / QUADS<L>, threads = 256;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * nodes;
    const int count = num_nodes - first < nodes ? static_cast<int>(num_nodes - first) : nodes;
    const int at = QuadRows<L>().at, thread = static_cast<int>(threadIdx.x);
    if (at < lanes) {
#pragma unroll
        for (int i = thread / QUADS<L>; i < nodes; i += at_once) {
            const int node = i < count ? i : count - 1;
            const Quad<float> own = read_quad(x + static_cast<int64_t>(internal_of[first + node]) * L + at);
#pragma unroll
            for (int k = 0; k < 4; ++k) transposed[at + k][i] = own[k];
        }
    }
    __syncthreads();
    for (int i = thread; i < lanes * nodes; i += threads)
        if (i % nodes < count) scores[i / nodes * num_nodes + first + i % nodes] = transposed[i / nodes][i % nodes];
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256. Shared memory: 0 unless stated.
//
// ppr_mass_lL: the sum of max(y, 0) deg per lane. Unit: a row and a quad; a thread, of many. Shared memory: 2056 bytes.
//   Registers: <= 80 (occupancy 37 %). Bytes: 4 N L + 8 N.
// ppr_scale_lL: x^ = fl(max(y, 0) deg / total) if totals are given, fl(y deg) in lanes that a proof ended, in the first
//   buffer, and each lane's lost mass.
//   Unit: a row and a quad; a thread, of many. Shared memory: 2376 bytes. Registers: <= 80 (occupancy 37 %).
//   Bytes: 8 N L + 8 N.
// ppr_residual_segments_lL: the sums of the segments of long rows, for ppr_residual.
//   Unit: a segment and a quad or, of masked lanes, a lane; a thread. Registers: <= 80 (occupancy 37 %).
//   Bytes: per segment 64 (12 + w) + 64 * 4 L gathered, 8 L written.
// ppr_residual_lL: the residual of x^ and each lane's bounds that follow from it and, if they are not null,
//   fl(x^ + r) in `improved` and fl(r / deg) in `correction`. Nothing where `left` is given and 0.
//   Unit: a row and a quad; a thread, of many. Shared memory: 19208 bytes. Registers: <= 80 (occupancy 37 %).
//   Bytes: nnz (4 + w + 8) + 4 L nnz gathered + 16 N + 4 N L.
// ppr_keep_lL: copies `from` to lanes that are kept. Unit: a tile and a lane; a thread. Registers: <= 40. Bytes: 8 N L.
// ppr_scores_lL: writes rows of `scores` (lanes, N), in the caller's node order.
//   Unit: 2048 / L nodes; a block. Shared memory: 8448 bytes. Registers: <= 48. Bytes: 8 N L + 4 N.
#define HOPFUSE_CERTIFY(L)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 3) ppr_mass_l##L(                                                \
        const PprScales scales, int64_t num_nodes, const PprIterate iterate, const JoinRoom join, double* mass) {      \
        __shared__ JoinShared shared;                                                                                  \
        Measured measured = hopfuse::mass<L>(scales, num_nodes, state_of(iterate), shared.values);                     \
        if (!join_blocks<L>(measured, join, &shared) || threadIdx.x >= L) return;                                      \
        mass[threadIdx.x] = ppr_sum(measured.sum);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 3) ppr_scale_l##L(                                               \
        const PprScales scales, const double* eta, const double* total, const int32_t* unproven, const int32_t* keeps, \
        int64_t num_nodes, const PprIterate iterate, const JoinRoom join, double* lost) {                              \
        __shared__ JoinShared shared;                                                                                  \
        __shared__ ScaleLanes lanes;                                                                                   \
        lanes.read<L>(total, unproven, keeps);                                                                         \
        Measured measured =                                                                                            \
            scale<L>(scales, eta, total != nullptr, lanes, num_nodes, state_of(iterate), iterate.even, shared.values); \
        if (!join_blocks<L>(measured, join, &shared) || threadIdx.x >= L) return;                                      \
        lost[threadIdx.x] = ppr_sum(measured.sum);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 3) ppr_residual_segments_l##L(const ResidualArguments a) {       \
        if (a.left == nullptr || *a.left != 0) sum_segments<L>(a);                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 3) ppr_residual_l##L(const ResidualArguments a) {                \
        if (a.left != nullptr && *a.left == 0) return;                                                                 \
        __shared__ ResidualShared shared;                                                                              \
        Measured measured = hopfuse::residual<L>(a, shared);                                                           \
        if (!join_blocks<L>(measured, a.join, &shared.join) || threadIdx.x >= L) return;                               \
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
        __shared__ float transposed[L][SCORES_OF_BLOCK / L + 1];                                                       \
        write_scores<L>(state_of(iterate), internal_of, num_nodes, lanes, transposed, scores);                         \
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
