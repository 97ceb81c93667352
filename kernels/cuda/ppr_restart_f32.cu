// Prepares a walk: degrees of masked and typed lanes, and the restarts of its
// queries. Contract: hopfuse/ppr.h; kernels/cpu/ppr_setup.h gives the same
// bits. L queries are stored side by side: state[node][lane].
#include "arguments/ppr_restart_f32.h"
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"
#include "hopfuse/query_status.h"
#include "ppr_scales.h"

namespace hopfuse {

// The factor of a node in a lane.
HOPFUSE_DEVICE float mask_share(const MaskArguments& a, int64_t row, int64_t lane) {
    if (a.allowed != nullptr && (lane >= a.queries || a.allowed[(a.shared ? 0 : lane) * a.num_nodes + row] == 0))
        return 0.0f;
    if (a.own == nullptr || lane >= a.queries) return 1.0f;
    return a.column[row] < 0 ? a.other[lane] : a.own[lane * a.columns + a.column[row]];
}

// The entries of a segment that count in a lane, a bit for each.
template <int L>
HOPFUSE_DEVICE uint64_t allowed_entries(const int32_t* indices, int64_t begin, int64_t end, const float* mask,
                                        int lane) {
    uint64_t bits = 0;
    for (int64_t e = begin; e < end; ++e)
        if (mask[static_cast<int64_t>(indices[e]) * L + lane] != 0.0f) bits |= static_cast<uint64_t>(1) << (e - begin);
    return bits;
}

// A degree, and the number of entries that count in it.
struct Counted {
    double degree;
    int64_t entries;
};

template <int L>
HOPFUSE_DEVICE Counted degree_of_type(const DegreeArguments& t, int64_t u, int type, int lane) {
    if (t.shares == nullptr) return Counted{t.degree[u * t.num_types + type], 0};
    Counted counted = {0.0, 0};
    for (int64_t e = t.indptr[u]; e < t.indptr[u + 1]; ++e) {
        if (t.edge_type != nullptr && t.edge_type[e] != type) continue;
        const double w = t.weight == nullptr ? 1.0 : widened(t.weight[e]);
        const float counts = t.shares[static_cast<int64_t>(t.indices[e]) * L + lane];
        counted.degree = fma(w, widened(counts), counted.degree);
        counted.entries += counts != 0.0f ? 1 : 0;
    }
    return counted;
}

// Properties of a node in a lane: the most entries that count in its row or
// out of it, its weight and the factor of its row, 1 if no walk continues.
struct NodeSizes {
    int64_t entries;
    float weight, factor;
};

// Writes a node's degrees in a lane.
template <int L>
HOPFUSE_DEVICE NodeSizes degrees(const DegreeArguments& t, int64_t u, int lane) {
    const int64_t at = u * L + lane;
    const float share = t.shares == nullptr ? 1.0f : t.shares[at];
    const bool open = share != 0.0f;
    NodeSizes sizes = {0, 1.0f, 1.0f};
    double joint = 0.0;
    int64_t out = 0, in = 0;
    for (int type = 0; type < t.num_types; ++type) {
        const Counted counted = degree_of_type<L>(t, u, type, lane);
        const double degree = counted.degree;
        out += counted.entries;
        const double eta = t.eta == nullptr ? 1.0 : t.eta[type * L + lane];
        if (!t.per_type) {
            joint = fma(eta, degree, joint);
            continue;
        }
        const int64_t slot = (u * t.num_types + type) * L + lane;
        const double inverse = open && degree > 0.0 ? 1.0 / degree : 0.0;
        t.scale64[slot] = inverse;
        t.scale32[slot] =
            t.eta == nullptr ? static_cast<float>(inverse) : static_cast<float>(inverse) * static_cast<float>(eta);
    }
    const bool walks = !t.per_type && open && joint > 0.0;
    if (!t.per_type) {
        t.scale64[at] = walks ? 1.0 / joint : 0.0;
        t.scale32[at] = walks ? static_cast<float>(static_cast<double>(share) * t.scale64[at]) : share;
    }
    if (walks) {
        sizes.weight = share;
        sizes.factor = t.scale32[at];
    }
    t.unscale64[at] = walks ? joint : (open ? 1.0 : 0.0);
    t.unscale32[at] = static_cast<float>(t.unscale64[at]);
    if (t.shares == nullptr || !open) return sizes;
    for (int64_t e = t.in_indptr == nullptr ? 0 : t.in_indptr[u]; t.in_indptr != nullptr && e < t.in_indptr[u + 1]; ++e)
        in += t.shares[static_cast<int64_t>(t.in_indices[e]) * L + lane] != 0.0f ? 1 : 0;
    sizes.entries = in > out ? in : out;
    return sizes;
}

// What rounding in a lane's own subgraph depends on: the most entries in a row
// or out of a node, and the number of nodes with entries.
struct SubgraphSizes {
    uint64_t *longest,
        *joined;  // (L,), 0 beforehand; or null: a whole graph's are known

    // Called by a block whose threads each have a node, thread t in lane t % L.
    // `room`: a number for each thread.
    template <int L>
    __device__ void count(int64_t entries, double* room) const {
        if (longest == nullptr) return;
        const double most = join_threads<L>(static_cast<double>(entries), room, Largest{});
        const double nodes = join_threads<L>(entries > 0 ? 1.0 : 0.0, room, Sum{});
        if (threadIdx.x >= L) return;
        atomicMax(reinterpret_cast<unsigned long long*>(longest) + threadIdx.x, static_cast<unsigned long long>(most));
        atomicAdd(reinterpret_cast<unsigned long long*>(joined) + threadIdx.x, static_cast<unsigned long long>(nodes));
    }
};

// The smallest weight of the nodes from which each lane walks on, and the
// smallest factor of their rows: (2, L), 1 beforehand; or null.
struct LeastOfRows {
    float* least;

    // Called by a block, like SubgraphSizes. Nonnegative float32 numbers have the
    // same order as their bits.
    template <int L>
    __device__ void take(const NodeSizes& sizes, double* room) const {
        if (least == nullptr) return;
        const double weight = join_threads<L>(static_cast<double>(sizes.weight), room, Least{}, 1.0);
        const double factor = join_threads<L>(static_cast<double>(sizes.factor), room, Least{}, 1.0);
        if (threadIdx.x >= L) return;
        unsigned* const bits = reinterpret_cast<unsigned*>(least) + threadIdx.x;
        atomicMin(bits, float_to_bits(static_cast<float>(weight)));
        atomicMin(bits + L, float_to_bits(static_cast<float>(factor)));
    }
};

HOPFUSE_DEVICE RowSet rows_of(const PprRestarts& r) { return RowSet{r.words, r.rank}; }
HOPFUSE_DEVICE int64_t count_restarts(const PprRestarts& r, int query) { return r.end[query] - r.begin[query]; }

HOPFUSE_DEVICE bool is_seed(const PprSeeds& s, int64_t at) {
    return s.node[at] >= 0 && s.node[at] < s.num_nodes && s.weight[at] > 0.0;
}

template <int L>
HOPFUSE_DEVICE int32_t seed_fault(const PprSeeds& s, int64_t at, int query) {
    if (s.node[at] == -1) return status_complete;
    if (s.node[at] < 0 || s.node[at] >= s.num_nodes) return status_seed_outside;
    const bool is_weight = s.weight[at] >= 0.0 && is_finite(s.weight[at]);
    if (!is_weight) return status_bad_weight;
    const bool may_hold =
        s.mask == nullptr || s.mask[static_cast<int64_t>(s.internal_of[s.node[at]]) * L + query] != 0.0f;
    return may_hold || s.weight[at] == 0.0 ? status_complete : status_seed_outside;
}

// Converts a query's seeds to its restart, by a warp: the place of a seed is
// the number of smaller nodes.
template <int L>
HOPFUSE_DEVICE int32_t sort_seeds(const PprSeeds& s, const PprRestarts& r, int query, int lane) {
    const int64_t row = static_cast<int64_t>(query) * s.width, begin = r.begin[query];
    int32_t fault = status_complete;
    int kept = 0;
    for (int i = lane; i < s.width; i += 32) {
        const int32_t own = seed_fault<L>(s, row + i, query);
        fault = own < fault ? own : fault;
        for (int j = 0; j < s.width; ++j)
            if (j != i && s.node[row + i] != -1 && s.node[row + j] == s.node[row + i])
                fault = status_seed_twice < fault ? status_seed_twice : fault;
        if (!is_seed(s, row + i)) continue;
        const int32_t node = s.internal_of[s.node[row + i]];
        int before = 0;
        for (int j = 0; j < s.width; ++j)
            before += j != i && is_seed(s, row + j) && s.internal_of[s.node[row + j]] < node ? 1 : 0;
        r.node[begin + before] = node;
        r.value[begin + before] = s.weight[row + i];
        ++kept;
    }
    for (int h = 16; h > 0; h /= 2) {
        kept += __shfl_xor_sync(0xffffffffu, kept, h);
        const int32_t other = __shfl_xor_sync(0xffffffffu, fault, h);
        fault = other < fault ? other : fault;
    }
    if (fault == status_complete && kept == 0 && s.may_be_empty == 0) fault = status_no_seed;
    if (lane == 0) r.end[query] = begin + (fault < 0 ? 0 : kept);
    return fault;
}

// What a block counts while it forms the set of rows that restart, in shared memory.
struct RowCounts {
    int32_t words, rows;
};

// Marks a query's rows, by a warp, and lists each word by whoever marks its first row.
HOPFUSE_DEVICE void mark_rows(const PprRestarts& r, int query, int lane, RowCounts* counts) {
    for (int64_t i = r.begin[query] + lane; i < r.end[query]; i += 32) {
        const int32_t word = r.node[i] >> 6;
        const unsigned long long bit = 1ull << (r.node[i] & 63);
        if (atomicOr(reinterpret_cast<unsigned long long*>(r.words) + word, bit) == 0)
            r.marked[atomicAdd(&counts->words, 1)] = word;
    }
}

// Gives the rows of each marked word their places in the tables, by a block. The order of words is chance, which no answer
// depends on.
HOPFUSE_DEVICE void rank_rows(const PprRestarts& r, RowCounts* counts) {
    for (int i = static_cast<int>(threadIdx.x); i < counts->words; i += static_cast<int>(blockDim.x))
        r.rank[r.marked[i]] = atomicAdd(&counts->rows, __popcll(r.words[r.marked[i]]));
}

// Writes a lane's restart, by a warp: s and b in the compact tables. Returns
// whether every restart node has edges. `total`: the sum of the values.
template <int L>
HOPFUSE_DEVICE bool spread_restart(const PprRestarts& r, const PprScales& scales, double damping, int query, int lane,
                                   double* restart64, float* restart32, double* total) {
    WarpTree<double> values;
    bool walks = true;
    const int64_t count = count_restarts(r, query);
    const RowSet rows = rows_of(r);
    const double* value = r.value + r.begin[query];
    const int32_t* node = r.node + r.begin[query];
    for (int64_t block = 0; block < count; block += 1024) {
        for (int64_t i = block + lane; i < count && i < block + 1024; i += 32) values.acc[0] = values.acc[0] + value[i];
        values.close_block(lane);
    }
    *total = values.result(lane);
    for (int64_t i = lane; i < count; i += 32) {
        const int64_t row = node[i], at = index_of_row(rows, row) * L + query;
        const double share = value[i] / *total, s = share > 0.0 ? share : PPR_LEAST_SHARE;
        const double inverse = scales.per_type ? 0.0 : scales.scale[scales.per_lane ? row * L + query : row];
        restart64[at] = s;
        restart32[at] = static_cast<float>((1.0 - damping) * s * (inverse > 0.0 ? inverse : 1.0));
        walks = walks && inverse > 0.0;
    }
    return __all_sync(0xffffffffu, walks) != 0;
}

// The sum of s^2 / deg over nodes from which the walk continues, by the warp
// that has written s.
template <int L>
HOPFUSE_DEVICE double restart_squares(const PprRestarts& r, const PprScales& scales, int query, int lane,
                                      const double* restart64) {
    WarpTree<double> squares;
    const int64_t count = count_restarts(r, query);
    const RowSet rows = rows_of(r);
    const int32_t* node = r.node + r.begin[query];
    for (int64_t block = 0; block < count; block += 1024) {
        for (int64_t i = block + lane; i < count && i < block + 1024; i += 32) {
            const int64_t row = node[i];
            const double s = restart64[index_of_row(rows, row) * L + query];
            const double inverse = scales.per_type ? 0.0 : scales.scale[scales.per_lane ? row * L + query : row];
            squares.acc[0] = squares.acc[0] + over_weight<L>(scales, s * s * inverse, row, query);
        }
        squares.close_block(lane);
    }
    return squares.result(lane);
}

// What determines how long a query walks.
struct WalkPlan {
    bool symmetric, accelerates;
    bool keeps;  // every node that restarts has edges
    double damping, tol, volume, norm;
};

HOPFUSE_DEVICE void rest_walk(const WalkState& w, int query) {
    w.limit[query] = 0;
    w.measured_from[query] = PPR_NEVER;
    w.next_try[query] = PPR_NEVER;
    w.walking[query] = 0;
    w.unproven[query] = 1;
    w.passes[query] = 0;
    w.anchor[query] = 0.0;  // passes read it in every lane
}

// If `last` gives the number of passes, measured from pass `first` on, a walk that needs others does not start.
HOPFUSE_DEVICE int32_t begin_walk(const WalkState& w, const WalkPlan& plan, int64_t max_iter, int64_t first,
                                  int64_t last, int query) {
    const int64_t theory = ppr_pass_limit(plan.accelerates, plan.damping, plan.tol, plan.volume, plan.norm);
    const int64_t most = max_iter > 0 && max_iter < theory ? max_iter : theory;
    const int64_t measured = ppr_measured_from(most);
    if (last > 0 && (most > last || measured < first)) return status_incomplete;
    w.limit[query] = most;
    w.measured_from[query] = measured;
    if (plan.symmetric && plan.keeps) w.next_try[query] = first_proof(most);
    w.theta[query] = ppr_theta(plan.damping, plan.tol);
    w.shrink[query] = ppr_shrink(plan.accelerates, plan.damping);
    w.anchor[query] = ppr_residual_anchor(w.theta[query], w.shrink[query]);
    w.walking[query] = 1;
    atomicAdd(w.left, 1);
    return status_complete;
}

}  // namespace hopfuse

using namespace hopfuse;

// Every kernel: Block: 256 (ppr_restart: 32 L). Shared memory: 0 unless stated.
//
// ppr_mask_lL: (N, L) 1 where a lane may hold mass, from `allowed` (queries, N) or (1, N), null: everywhere; lanes from
//   `queries` on are unused. If `own` (queries, columns) is given, node weights take the place of 1: those of a node's column,
//   `other` (queries,) where that is -1, and 1 in unused lanes; `least` (2, L) becomes 1.
//   Unit: an entry. Registers: <= 32. Bytes: N L read, 4 N L written; with weights 4 N and 4 N L gathered.
// ppr_allowed_lL: which entries of the segments of long rows count in a lane.
//   Unit: a segment and a lane; a thread. Registers: <= 48. Bytes: per segment 256 + 256 L gathered, 8 L written.
// ppr_before_lL: how many entries of its row count before each segment.
//   Unit: a long row and a lane; a thread. Registers: <= 40. Bytes: per segment 12 L.
// ppr_degrees_lL: scale and unscale of each lane, float64 and float32, and, where they are not null, the sizes of the lanes'
//   subgraphs, and the least weights and factors.
//   Unit: a row and a lane; a thread. Shared memory: 2048 bytes. Registers: <= 64.
//   Bytes: with masks nnz (5 + w) + 4 nnz L gathered; N T' 12 L + 12 N L written.
// ppr_restart_lL: restarts from seeds (or as they are given), the set of their rows, s and b of each query in compact tables,
//   and the state of a walk: its pass limit, the first pass to measure, the first to try a proof after, and what ends it.
//   Lanes without seeds do not walk. The set, the tables and the counts are 0 beforehand.
//   Unit: a query; a warp, all in one block. Block: 32 L. Shared memory: 8 bytes. Registers: <= 96 (occupancy 25 %).
//   Bytes: 24 a seed, 16 for each word of the set that has rows, 12 a seed in the tables; a query's seeds are read once for each of
//   them.
#define HOPFUSE_SET_UP(L)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) ppr_mask_l##L(const MaskArguments a) {                           \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        if (a.least != nullptr && at < 2 * L) a.least[at] = 1.0f;                                                      \
        if (at >= a.num_nodes * L) return;                                                                             \
        a.mask[at] = mask_share(a, at / L, at % L);                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ppr_allowed_l##L(const AllowedArguments a) {                     \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, segment = at / L;              \
        if (segment >= a.num_segments) return;                                                                         \
        a.allowed[at] = allowed_entries<L>(a.indices, a.segment_begin[segment], a.segment_end[segment], a.mask,        \
                                           static_cast<int>(at % L));                                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) ppr_before_l##L(const BeforeArguments a) {                       \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, row = at / L;                  \
        if (row >= a.num_rows) return;                                                                                 \
        int32_t count = 0;                                                                                             \
        for (int64_t i = a.first_of[row] * L + at % L; i < a.first_of[row + 1] * L; i += L) {                          \
            a.before[i] = count;                                                                                       \
            count += __popcll(a.allowed[i]);                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_degrees_l##L(const DegreeArguments a) {                   \
        __shared__ double room[256];                                                                                   \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                                \
        NodeSizes sizes = {0, 1.0f, 1.0f};                                                                             \
        if (at < a.num_nodes * L) sizes = degrees<L>(a, at / L, static_cast<int>(at % L));                             \
        SubgraphSizes{a.longest, a.joined}.count<L>(sizes.entries, room);                                              \
        LeastOfRows{a.least}.take<L>(sizes, room);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(32 * L, 1) ppr_restart_l##L(const RestartArguments a) {               \
        __shared__ RowCounts counts;                                                                                   \
        const int query = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;               \
        const PprSeeds& seeds = a.seeds;                                                                               \
        const PprRestarts& restarts = a.restarts;                                                                      \
        int32_t fault = status_complete;                                                                               \
        if (threadIdx.x == 0) counts = {0, 0};                                                                         \
        if (seeds.width >= 0 && query < seeds.queries) fault = sort_seeds<L>(seeds, restarts, query, lane);            \
        if (seeds.width >= 0 && query >= seeds.queries && lane == 0) restarts.end[query] = restarts.begin[query];      \
        __syncthreads();                                                                                               \
        mark_rows(restarts, query, lane, &counts);                                                                     \
        __syncthreads();                                                                                               \
        rank_rows(restarts, &counts);                                                                                  \
        __syncthreads();                                                                                               \
        const double d = a.damping[query];                                                                             \
        double total;                                                                                                  \
        const bool keeps_all =                                                                                         \
            spread_restart<L>(restarts, a.scales, d, query, lane, a.restart64, a.restart32, &total);                   \
        const double squares = restart_squares<L>(restarts, a.scales, query, lane, a.restart64);                       \
        if (lane != 0) return;                                                                                         \
        if (query == 0) *a.walk.last_pass = 0;                                                                         \
        if (!is_finite(total)) fault = status_bad_weight;                                                              \
        const int64_t sizes_at = seeds.mask == nullptr ? 0 : query;                                                    \
        a.slack[query] = ppr_slack(static_cast<int64_t>(a.longest[sizes_at]), a.scales.num_types);                     \
        a.missed[query] = ppr_missed(static_cast<int64_t>(a.joined[sizes_at]) + count_restarts(restarts, query));      \
        a.keeps[query] = a.symmetric != 0 && keeps_all ? 1 : 0;                                                        \
        const bool fast = a.symmetric != 0 && (a.least == nullptr || ppr_accelerates(a.least[query]));                 \
        a.accelerates[query] = fast ? 1 : 0;                                                                           \
        rest_walk(a.walk, query);                                                                                      \
        if (fault == status_complete && count_restarts(restarts, query) > 0)                                           \
            fault = begin_walk(                                                                                        \
                a.walk,                                                                                                \
                {a.symmetric != 0, fast, keeps_all, d, a.tol, a.volume[a.scales.per_lane ? query : 0], sqrt(squares)}, \
                a.max_iter, a.first, a.last, query);                                                                   \
        a.status[query] = fault;                                                                                       \
    }

HOPFUSE_SET_UP(4)
HOPFUSE_SET_UP(8)
HOPFUSE_SET_UP(16)
HOPFUSE_SET_UP(32)

#define HOPFUSE_TYPES(L)                                  \
    HOPFUSE_KERNEL_TYPE(ppr_mask_l##L, MaskKernel);       \
    HOPFUSE_KERNEL_TYPE(ppr_allowed_l##L, AllowedKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_before_l##L, BeforeKernel);   \
    HOPFUSE_KERNEL_TYPE(ppr_degrees_l##L, DegreesKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_restart_l##L, RestartKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
