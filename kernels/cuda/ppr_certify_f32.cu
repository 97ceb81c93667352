// From the walk's last iterate to the scores that are returned and their certificate, in float64. Contract: hopfuse/ppr.h;
// kernels/cpu/ppr_certify.h and ppr_setup.h give the same bits. L queries lie side by side: state[node][lane].
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "ppr_walk.h"

namespace hopfuse {

// Degrees as the walk uses them: (N, T') and (N,), or with a value per lane.
struct Scales {
    const double* scale;    // 1 / degree, 0 where nothing walks
    const double* unscale;  // the degree, 1 where it is 0; or null: 1
    int per_lane;
    int per_type;
    int num_types;

    template <int L>
    __device__ double weight(int64_t row, int lane) const {
        return unscale == nullptr ? 1.0 : unscale[per_lane ? row * L + lane : row];
    }

    // 1 - (sum of row u of P).
    template <int L>
    __device__ double lost_share(const double* eta, int64_t row, int lane) const {
        const int types = per_type ? num_types : 1;
        double kept = 0.0;
        for (int t = 0; t < types; ++t) {
            const int64_t at = row * types + t;
            const double share = per_type && eta != nullptr ? eta[t * L + lane] : 1.0;
            kept += scale[per_lane ? at * L + lane : at] > 0.0 ? share : 0.0;
        }
        return kept < 1.0 ? 1.0 - kept : 0.0;
    }
};

struct TileRange {
    int64_t first, last;
    __device__ TileRange(int64_t tile, int64_t num_nodes)
        : first(tile * PPR_TILE),
          last(tile * PPR_TILE + PPR_TILE < num_nodes ? tile * PPR_TILE + PPR_TILE : num_nodes) {}
};

template <int L>
HOPFUSE_DEVICE void mass_of_tile(const float* state, const Scales& scales, int64_t num_nodes, int64_t tile, int lane,
                                 double* tiles) {
    const TileRange rows(tile, num_nodes);
    double sum = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double y = static_cast<double>(state[row * L + lane]);
        sum = fma(y > 0.0 ? y : 0.0, scales.weight<L>(row, lane), sum);
    }
    tiles[tile * 2 * L + lane] = sum;
}

template <int L>
HOPFUSE_DEVICE void scale_tile(float* state, const Scales& scales, const double* eta, const double* total, bool clamps,
                               int64_t num_nodes, int64_t tile, int lane, double* tiles) {
    const TileRange rows(tile, num_nodes);
    double sum = 0.0;
    const double factor = !clamps ? 1.0 : total != nullptr && total[lane] > 0.0 ? 1.0 / total[lane] : 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const int64_t at = row * L + lane;
        if (total != nullptr) {
            const double y = static_cast<double>(state[at]);
            const double kept = !clamps || y > 0.0 ? y : 0.0;
            state[at] = static_cast<float>(kept * scales.weight<L>(row, lane) * factor);
        }
        sum = fma(static_cast<double>(state[at]), scales.lost_share<L>(eta, row, lane), sum);
    }
    tiles[tile * 2 * L + lane] = sum;
}

// What the float64 walk of one row reads.
struct ResidualTables {
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const double* eta;
    const float* x;
    RowSet restart_rows;
    const double* restart;  // (rows, L) s
    const double* damping;  // (L,)
    const double* lost;     // (L,)
};

template <int L>
HOPFUSE_DEVICE double walked_sum(const ResidualTables& t, const Scales& scales, int64_t row, int lane) {
    double acc = 0.0;
    for (int64_t e = t.indptr[row]; e < t.indptr[row + 1]; ++e) {
        const int64_t u = t.indices[e];
        const int type = t.edge_type == nullptr ? 0 : t.edge_type[e];
        const double w = t.weight == nullptr ? 1.0 : static_cast<double>(t.weight[e]);
        const int64_t at = scales.per_type ? u * scales.num_types + type : u;
        double factor = w * scales.scale[scales.per_lane ? at * L + lane : at];
        if (t.eta != nullptr) factor = factor * t.eta[type * L + lane];
        acc = fma(factor, static_cast<double>(t.x[u * L + lane]), acc);
    }
    return acc;
}

// r_v = (d P' x^ + (1 - d + d m) s - x^)_v.
template <int L>
HOPFUSE_DEVICE double residual_of_row(const ResidualTables& t, const Scales& scales, int64_t row, int lane) {
    const double d = t.damping[lane], back = 1.0 - d + d * t.lost[lane];
    double walked = d * walked_sum<L>(t, scales, row, lane);
    if (scales.per_lane) {  // edges into nodes that may not hold mass do not exist
        const double open = scales.unscale[row * L + lane];
        walked = walked * (scales.per_type ? open : (open > 0.0 ? 1.0 : 0.0));
    }
    double r = walked - static_cast<double>(t.x[row * L + lane]);
    if (t.restart_rows.holds(row)) r = fma(back, t.restart[t.restart_rows.index(row) * L + lane], r);
    return r;
}

// `magnitude` (64, L) shared: |r|; then its sums by tile, rows in order, and the largest (2 slack x + |r|) / deg.
template <int L>
HOPFUSE_DEVICE void residual(const ResidualTables& t, const Scales& scales, int64_t num_nodes, double slack,
                             int symmetric, float* improved, double* tiles, double* magnitude) {
    const int64_t tile = blockIdx.x;
    const TileRange rows(tile, num_nodes);
    const int lane = static_cast<int>(threadIdx.x) % L, group = static_cast<int>(threadIdx.x) / L;
    const int groups = static_cast<int>(blockDim.x) / L;
    for (int64_t row = rows.first + group; row < rows.last; row += groups) {
        const double r = residual_of_row<L>(t, scales, row, lane);
        const int64_t at = row * L + lane;
        if (improved != nullptr) improved[at] = static_cast<float>(static_cast<double>(t.x[at]) + r);
        magnitude[(row - rows.first) * L + lane] = fabs(r);
    }
    __syncthreads();
    if (group != 0) return;
    double sum = 0.0, largest = 0.0;
    for (int64_t row = rows.first; row < rows.last; ++row) {
        const double r = magnitude[(row - rows.first) * L + lane];
        sum = sum + r;
        if (!symmetric) continue;
        const double grown = fma(2.0 * slack, static_cast<double>(t.x[row * L + lane]), r);
        const double share = grown * scales.scale[scales.per_lane ? row * L + lane : row];
        largest = share > largest ? share : largest;
    }
    tiles[tile * 2 * L + lane] = sum;
    tiles[tile * 2 * L + L + lane] = largest;
}

// Degrees of one row and lane inside the lane's own subgraph and by its own edge types.
struct DegreeTables {
    const int64_t* indptr;  // rows of outgoing edges (of any, where they go both ways)
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const double* degree;  // (N, T) of the whole graph
    const double* eta;
    const float* mask;  // (N, L), or null: all allowed
    int num_types;
    int per_type;
};

template <int L>
HOPFUSE_DEVICE double degree_of_type(const DegreeTables& t, int64_t u, int type, int lane) {
    if (t.mask == nullptr) return t.degree[u * t.num_types + type];
    double degree = 0.0;
    for (int64_t e = t.indptr[u]; e < t.indptr[u + 1]; ++e) {
        if (t.edge_type != nullptr && t.edge_type[e] != type) continue;
        const double w = t.weight == nullptr ? 1.0 : static_cast<double>(t.weight[e]);
        degree = fma(w, static_cast<double>(t.mask[static_cast<int64_t>(t.indices[e]) * L + lane]), degree);
    }
    return degree;
}

template <int L>
HOPFUSE_DEVICE void degrees(const DegreeTables& t, int64_t u, int lane, float* scale32, float* unscale32,
                            double* scale64, double* unscale64) {
    const int64_t at = u * L + lane;
    const bool open = t.mask == nullptr || t.mask[at] != 0.0f;
    double joint = 0.0;
    for (int type = 0; type < t.num_types; ++type) {
        const double degree = degree_of_type<L>(t, u, type, lane);
        const double eta = t.eta == nullptr ? 1.0 : t.eta[type * L + lane];
        if (!t.per_type) {
            joint = fma(eta, degree, joint);
            continue;
        }
        const int64_t slot = (u * t.num_types + type) * L + lane;
        const double inverse = open && degree > 0.0 ? 1.0 / degree : 0.0;
        scale64[slot] = inverse;
        scale32[slot] =
            t.eta == nullptr ? static_cast<float>(inverse) : static_cast<float>(inverse) * static_cast<float>(eta);
    }
    const bool walks = !t.per_type && open && joint > 0.0;
    if (!t.per_type) {
        scale64[at] = walks ? 1.0 / joint : 0.0;
        scale32[at] = walks ? static_cast<float>(scale64[at]) : (open ? 1.0f : 0.0f);
    }
    unscale64[at] = walks ? joint : (open ? 1.0 : 0.0);
    unscale32[at] = static_cast<float>(unscale64[at]);
}

// The restarts of the block's queries, CSR, nodes ascending in a row.
struct Restarts {
    const int64_t* begin;  // (L,) by lane
    const int64_t* end;
    const int32_t* node;
    const double* value;
    RowSet rows;
};

// A lane's restart, by a warp: s and b in the compact tables, and the sum of s^2 / deg over nodes that walk. `keeps`:
// every node that restarts has edges.
template <int L>
HOPFUSE_DEVICE double spread_restart(const Restarts& r, const Scales& scales, double damping, int query, int lane,
                                     double* restart64, float* restart32, bool* keeps) {
    WarpTree<double> values, squares;
    bool walks = true;
    const int64_t count = r.end[query] - r.begin[query];
    const double* value = r.value + r.begin[query];
    const int32_t* node = r.node + r.begin[query];
    for (int64_t block = 0; block < count; block += 1024) {
        for (int64_t i = block + lane; i < count && i < block + 1024; i += 32) values.acc[0] = values.acc[0] + value[i];
        values.close_block(lane);
    }
    const double total = values.result(lane);
    for (int64_t block = 0; block < count; block += 1024) {
        for (int64_t i = block + lane; i < count && i < block + 1024; i += 32) {
            const int64_t row = node[i], at = r.rows.index(row) * L + query;
            const double s = value[i] / total;
            const double inverse = scales.per_type ? 0.0 : scales.scale[scales.per_lane ? row * L + query : row];
            restart64[at] = s;
            restart32[at] = static_cast<float>((1.0 - damping) * s * (inverse > 0.0 ? inverse : 1.0));
            squares.acc[0] = squares.acc[0] + s * s * inverse;
            walks = walks && inverse > 0.0;
        }
        squares.close_block(lane);
    }
    *keeps = __all_sync(0xffffffffu, walks) != 0;
    return squares.result(lane);
}

}  // namespace hopfuse

using namespace hopfuse;

#define HOPFUSE_SCALES const double *scale, const double *unscale, int per_lane, int per_type, int num_types
#define HOPFUSE_MAKE_SCALES const Scales scales = {scale, unscale, per_lane, per_type, num_types}
#define HOPFUSE_TILE_AND_LANE(L)                                                        \
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; \
    const int64_t tile = thread / L;                                                    \
    const int lane = static_cast<int>(thread % L);                                      \
    if (tile * PPR_TILE >= num_nodes) return

// Every kernel: Block: 256 (ppr_totals: 32 L). Shared memory: 0 unless said.
//
// ppr_mask_lL: (N, L) 1 where a lane may hold mass, from `allowed` (queries, N) or (1, N); lanes from `queries`
//   on are unused.
//   Unit: an entry. Registers: <= 32. Bytes: N L read, 4 N L written.
// ppr_degrees_lL: scale and unscale of each lane, float64 and float32.
//   Unit: a row and a lane; a thread. Registers: <= 64. Bytes: with masks nnz (5 + w) + 4 nnz L
//   gathered; N T' 12 L + 12 N L written.
// ppr_volume_lL: each lane's sum of degrees over rows that walk, in node order (one chain, as in a whole graph).
//   Unit: a lane. Registers: <= 48. Bytes: 16 N L.
// ppr_clear_lL: zeroes the compact restart tables. Unit: an entry. Registers: <= 32. Bytes: 12 rows L.
// ppr_restart_lL: s and b of each query in the compact tables, its pass limit, the first pass to measure, the first
//   to try a proof after, and what ends a walk.
//   Unit: a query; a warp, all in one block. Block: 32 L. Registers: <= 64. Bytes: 24 a seed.
// ppr_mass_lL: the sum of max(y, 0) deg of each tile. Unit: a tile and a lane; a thread. Registers: <= 64. Bytes: 4 N L.
// ppr_totals_lL: sums (column 0) and maxima (column 1) of the tiles' float64 partials, by lane.
//   Unit: a lane; a warp, all in one block. Registers: <= 64. Bytes: 16 L tiles.
// ppr_scale_lL: x^ = fl(max(y, 0) deg / total) where totals are given, fl(y deg) in lanes that a proof ended,
//   and the lost mass of each tile.
//   Unit: a tile and a lane; a thread. Registers: <= 64. Bytes: 8 N L.
// ppr_residual_lL: the certificate's residual, tile by tile, and (improved not null) fl(x^ + r).
//   Unit: a tile; a block. Shared memory: 8 * 64 L bytes. Registers: <= 64.
//   Bytes: nnz (4 + w + 8) + 4 L nnz gathered + 8 N + 8 N L.
// ppr_keep_lL: lanes that are not open take `from` again. Unit: an entry. Registers: <= 32. Bytes: 8 N L.
// ppr_scores_lL: rows of `scores` (lanes, N), in the caller's node order. Unit: a score. Registers: <= 32.
//   Bytes: 8 N L + 4 N.
#define HOPFUSE_CERTIFY(L)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_mask_l##L(const uint8_t* allowed, int shared, int queries, int64_t num_nodes, float* mask) {               \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at >= num_nodes * L) return;                                                                               \
        const int64_t row = at / L, lane = at % L;                                                                     \
        mask[at] = lane < queries && allowed[(shared ? 0 : lane) * num_nodes + row] != 0 ? 1.0f : 0.0f;                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_degrees_l##L(const int64_t* indptr, const int32_t* indices, const float* weight, const uint8_t* edge_type, \
                         const double* degree, const double* eta, const float* mask, int num_types, int per_type,      \
                         int64_t num_nodes, float* scale32, float* unscale32, double* scale64, double* unscale64) {    \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at >= num_nodes * L) return;                                                                               \
        const DegreeTables tables = {indptr, indices, weight, edge_type, degree, eta, mask, num_types, per_type};      \
        degrees<L>(tables, at / L, static_cast<int>(at % L), scale32, unscale32, scale64, unscale64);                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_volume_l##L(const double* scale, const double* unscale, int64_t num_nodes, double* volume) {               \
        const int lane = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);                                      \
        if (lane >= L) return;                                                                                         \
        double sum = 0.0;                                                                                              \
        for (int64_t row = 0; row < num_nodes; ++row)                                                                  \
            sum = fma(scale[row * L + lane] > 0.0 ? 1.0 : 0.0, unscale[row * L + lane], sum);                          \
        volume[lane] = sum;                                                                                            \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_clear_l##L(int64_t num_rows, double* restart64, float* restart32) {                                        \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at >= num_rows * L) return;                                                                                \
        restart64[at] = 0.0;                                                                                           \
        restart32[at] = 0.0f;                                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32 * L) ppr_restart_l##L(                                             \
        HOPFUSE_SCALES, const int64_t* begin, const int64_t* end, const int32_t* node, const double* value,            \
        const uint64_t* restart_words, const int32_t* restart_rank, const double* damping, const double* volume,       \
        int symmetric, double tol, int64_t max_iter, double* restart64, float* restart32, int64_t* limit,              \
        int64_t* measured_from, int64_t* next_try, float* theta, float* shrink) {                                      \
        HOPFUSE_MAKE_SCALES;                                                                                           \
        const int query = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;               \
        const Restarts restarts = {begin, end, node, value, {restart_words, restart_rank}};                            \
        const double d = damping[query];                                                                               \
        bool keeps;                                                                                                    \
        const double squares = spread_restart<L>(restarts, scales, d, query, lane, restart64, restart32, &keeps);      \
        if (lane != 0) return;                                                                                         \
        const double sum = volume[per_lane ? query : 0];                                                               \
        const int64_t most = ppr_pass_limit(symmetric != 0, d, tol, sum, sqrt(squares));                               \
        limit[query] = max_iter > 0 && max_iter < most ? max_iter : most;                                              \
        measured_from[query] = ppr_measured_from(limit[query]);                                                        \
        next_try[query] = symmetric != 0 && keeps ? PPR_FIRST_TRY : PPR_NEVER;                                         \
        theta[query] = ppr_theta(d, tol);                                                                              \
        shrink[query] = ppr_shrink(symmetric != 0, d);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_mass_l##L(HOPFUSE_SCALES, int64_t num_nodes, const float* even, const float* odd,                          \
                      const int64_t* last_pass, double* tiles) {                                                       \
        HOPFUSE_TILE_AND_LANE(L);                                                                                      \
        HOPFUSE_MAKE_SCALES;                                                                                           \
        mass_of_tile<L>(*last_pass % 2 == 0 ? even : odd, scales, num_nodes, tile, lane, tiles);                       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32 * L)                                                               \
        ppr_totals_l##L(const double* tiles, int64_t num_tiles, double* sum, double* largest) {                        \
        const int query = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;               \
        const double total = sum_tiles<L, double>(tiles, num_tiles, 0, query, lane);                                   \
        const double most = largest == nullptr ? 0.0 : max_tiles<L, double>(tiles, num_tiles, 1, query, lane);         \
        if (lane != 0) return;                                                                                         \
        sum[query] = total;                                                                                            \
        if (largest != nullptr) largest[query] = most;                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_scale_l##L(HOPFUSE_SCALES, const double* eta, const double* total, const int32_t* unproven,                \
                       int64_t num_nodes, float* even, float* odd, const int64_t* last_pass, double* tiles) {          \
        HOPFUSE_TILE_AND_LANE(L);                                                                                      \
        HOPFUSE_MAKE_SCALES;                                                                                           \
        scale_tile<L>(*last_pass % 2 == 0 ? even : odd, scales, eta, total, unproven[lane] != 0, num_nodes, tile,      \
                      lane, tiles);                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ppr_residual_l##L(                                               \
        HOPFUSE_SCALES, const int64_t* indptr, const int32_t* indices, const float* weight, const uint8_t* edge_type,  \
        const double* eta, int64_t num_nodes, const float* even, const float* odd, const int64_t* last_pass,           \
        const uint64_t* restart_words, const int32_t* restart_rank, const double* restart, const double* damping,      \
        const double* lost, double slack, int symmetric, float* improved, double* tiles) {                             \
        HOPFUSE_DYNAMIC_SHARED(double, magnitude);                                                                     \
        HOPFUSE_MAKE_SCALES;                                                                                           \
        const ResidualTables tables = {                                                                                \
            indptr,  indices, weight, edge_type, eta, *last_pass % 2 == 0 ? even : odd, {restart_words, restart_rank}, \
            restart, damping, lost};                                                                                   \
        residual<L>(tables, scales, num_nodes, slack, symmetric, improved, tiles, magnitude);                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_keep_l##L(const float* from, float* to, const int32_t* open, int64_t num_nodes) {                          \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at < num_nodes * L && open[at % L] == 0) to[at] = from[at];                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        ppr_scores_l##L(const float* even, const float* odd, const int64_t* last_pass, const int32_t* internal_of,     \
                        int64_t num_nodes, int lanes, float* scores) {                                                 \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (at >= num_nodes * lanes) return;                                                                           \
        const float* x = *last_pass % 2 == 0 ? even : odd;                                                             \
        scores[at] = x[static_cast<int64_t>(internal_of[at % num_nodes]) * L + at / num_nodes];                        \
    }

HOPFUSE_CERTIFY(4)
HOPFUSE_CERTIFY(8)
HOPFUSE_CERTIFY(16)
HOPFUSE_CERTIFY(32)
