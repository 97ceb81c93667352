// Batched Personalized PageRank, float32 walk. Contract and order of operations: hopfuse/ppr.h; the CPU's kernels in
// kernels/cpu/ppr_*.h give the same bits. L queries (4, 8, 16 or 32) walk together: state[node][lane].
#include "ppr_walk.h"

namespace hopfuse {

// The control state of lanes during a walk.
struct Decision {
    int64_t number;                        // of the pass
    const int64_t *measured_from, *limit;  // `limit` null: no lane ends with this pass
    const float *theta, *shrink;
    int32_t* walking;  // (L,) 0: the lane's state does not change
    int64_t* passes;
    int32_t* left;       // (1,) lanes that walk
    int64_t* last_pass;  // (1,) the pass that wrote the walk's last iterate

    // Decides after a measured pass whether a lane's walk ends with it. Called by one thread, with the lane's residual.
    __device__ void take(double sum, int lane) const {
        if (walking[lane] == 0) return;
        const float residual = static_cast<float>(sum);
        const bool small = number >= measured_from[lane] && residual * shrink[lane] <= theta[lane];
        if (!small && number < limit[lane]) return;
        walking[lane] = 0;
        passes[lane] = number;
        if (atomicSub(left, 1) == 1) *last_pass = number;
    }
};

struct PassArguments {
    DeviceRows rows;
    int64_t num_nodes;
    const float* current;
    float* next;
    const float* partial;  // (segments, L)
    RowSet long_rows;      // rows longer than a segment
    LongRows segments;
    RowSet restart_rows;
    const float* restart;        // (rows, L)
    const float* factor;         // g: (N,) or (N, L), or null: 1
    const float* attraction;     // (N, L) node weights, or null: all 1
    const double* scale64;       // (N, L) 0 where a degree is 0, or null: only rows without entries have degree 0
    const float* damping;        // (L,)
    const float* omega;          // (L,), or null: power iteration
    const int32_t* accelerates;  // (L,) 0: the lane's omega is 1
    const float* degree;         // (N,) or (N, L), or null: 1
    const double* anchor;        // (L,) of the residual
    double* measured;            // (2, L) the L1 residual and the largest change, or null: not measured
    JoinRoom join;
    Decision decision;
};

struct SegmentArguments {
    DeviceRows rows;
    LongRows segments;
    const float* state;
    int64_t num_segments;
    const int32_t* left;
    float* partial;  // (segments, L)
};

template <int L, int Kind>
HOPFUSE_DEVICE float row_sum(const PassArguments& t, int64_t row, int64_t begin, int64_t end, int lane) {
    if (end - begin <= PPR_SEGMENT) return 0.0f + segment_sum<L, Kind>(t.rows, t.current, begin, end, lane);
    return sum_of_segments<L>(t.segments, t.long_rows.index(row), lane, t.partial);
}

// What a lane keeps in registers for all its rows.
struct LaneState {
    int lane;
    bool walks;
    float damping, omega;
};

// One row of one lane: writes `next`, returns |z - y|, not yet divided by the node weight.
template <int L, int Kind>
HOPFUSE_DEVICE float pass_row(const PassArguments& t, int64_t row, const LaneState& own, bool measure) {
    const int lane = own.lane;
    const int64_t at = row * L + lane, begin = t.rows.indptr[row], end = t.rows.indptr[row + 1];
    float s = 0.0f;
    if (own.walks || read_together<L, Kind>) s = row_sum<L, Kind>(t, row, begin, end, lane);
    if (!own.walks) {
        t.next[at] = t.current[at];
        return 0.0f;
    }
    const float gd = t.factor == nullptr ? own.damping : t.factor[t.rows.per_lane ? at : row] * own.damping;
    const bool restarts = t.restart_rows.holds(row);
    const float b = restarts ? t.restart[t.restart_rows.index(row) * L + lane] : 0.0f;
    const float z = fmaf(gd, s, b);
    float following = z;
    // Without a restart a node of degree 0 has no mass in either case.
    const bool is_lone = begin == end || (restarts && t.scale64 != nullptr && !(t.scale64[at] > 0.0));
    if (t.omega != nullptr && !is_lone) {
        const float before = t.next[at];
        following = fmaf(own.omega, z - before, before);
    }
    t.next[at] = following;
    return measure ? fabsf(z - t.current[at]) : 0.0f;
}

// One tile in all lanes. Returns the measurements of its rows in the thread's lane.
template <int L, int Kind>
HOPFUSE_DEVICE Measured pass(const PassArguments& t) {
    const TileRange tile(blockIdx.x, t.num_nodes);
    const bool measure = t.measured != nullptr;
    const int lane = static_cast<int>(threadIdx.x) % L, group = static_cast<int>(threadIdx.x) / L;
    const int groups = static_cast<int>(blockDim.x) / L;
    const float omega = t.omega == nullptr || t.accelerates[lane] == 0 ? 1.0f : t.omega[lane];
    const LaneState own = {lane, t.decision.walking[lane] != 0, t.damping[lane], omega};
    GrainSum sum(measure ? t.anchor[lane] : 1.0);
    float largest = 0.0f;
    for (int64_t row = tile.first + group; row < tile.last; row += groups) {
        const float change = pass_row<L, Kind>(t, row, own, measure);
        if (!measure) continue;
        const float weight = t.degree == nullptr ? 1.0f : t.degree[t.rows.per_lane ? row * L + lane : row];
        sum.add(weight * change);
        const float share = t.attraction == nullptr ? change : over_attraction(change, t.attraction[row * L + lane]);
        largest = share > largest ? share : largest;
    }
    return Measured{sum.value(), widened(largest)};
}

// Called by the first L threads of the last block.
template <int L>
HOPFUSE_DEVICE void end_pass(const PassArguments& a, const Measured& all) {
    put_measured<L>(all, a.measured);
    if (a.decision.limit != nullptr) a.decision.take(all.sum, static_cast<int>(threadIdx.x));
}

// Writes the sums of the segments of rows longer than one segment.
template <int L, int Kind>
HOPFUSE_DEVICE void segments(const SegmentArguments& a) {
    const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t segment = at / L;
    if (segment >= a.num_segments) return;
    const int lane = static_cast<int>(at % L);
    const LongRows& r = a.segments;
    if (r.allowed != nullptr)
        return masked_segment<L>(r, segment, lane, a.partial, [&](int64_t e, float acc) {
            return share_of_entry<L, Kind>(a.rows, a.state, e, lane).plus(acc);
        });
    a.partial[segment * L + lane] = segment_sum<L, Kind>(a.rows, a.state, r.begin[segment], r.end[segment], lane);
}

}  // namespace hopfuse

using namespace hopfuse;

// Blocks per multiprocessor: other warps hide the latency of the gathers. sm_75 has at most 1024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HOPFUSE_PASS_BLOCKS(kind) (kind == edges_per_type ? 4 : 5)
#else
#define HOPFUSE_PASS_BLOCKS(kind) 4
#endif

// ppr_segments_KIND_lL: the sums of segments of long rows.
//   Unit: a segment of one row and a lane; a thread. Block: 256. Shared memory: 0. Registers: <= 64 (occupancy 50 %).
//   Bytes: per segment 64 (4 + w) + 64 * 4 L gathered, 4 L written; 12 L more where lanes are masked.
#define HOPFUSE_SEGMENTS(name, kind, L)                                          \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind)) \
        ppr_segments_##name##_l##L(const SegmentArguments a) {                   \
        if (*a.left != 0) segments<L, kind>(a);                                  \
    }

// ppr_pass_KIND_lL: one pass over all rows: z, the next iterate, copies of frozen lanes, and (if `measured` is not null) the
// L1 residual and the largest change per lane. If `limit` is not null it also decides which lanes end with the pass; `left`
// counts those that continue, and `last_pass` is the pass that wrote the walk's last iterate.
//   Unit: a tile of 64 rows; a block of 256 threads, L neighbours for the L lanes of a row. Block: 256.
//   Shared memory: 2056 bytes (none where nothing is measured). Registers: <= 64 (occupancy 50 %).
//   Bytes: nnz (4 + w) + 4 L nnz gathered + N (8 + 4) + 8 L N (the iterate before in, the next one out); 4 L N more
//   where residuals are measured, and 4 L N of node weights there, and 33 L a tile.
#define HOPFUSE_PASS(name, kind, L)                                                    \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind))       \
        ppr_pass_##name##_l##L(const PassArguments a) {                                \
        if (*a.decision.left == 0) return;                                             \
        Measured own = pass<L, kind>(a);                                               \
        if (a.measured == nullptr) return;                                             \
        HOPFUSE_DYNAMIC_SHARED(JoinShared, shared);                                    \
        if (join_grid<L>(own, a.join, shared) && threadIdx.x < L) end_pass<L>(a, own); \
    }

// ppr_start_lL: the start: current = b, next (the iterate before) = 0.
//   Unit: an entry of the state; a thread. Block: 256. Shared memory: 0. Registers: <= 32. Bytes: 8 L N written.
#define HOPFUSE_LANES(L)                                                                                         \
    extern "C" __global__ void __launch_bounds__(256)                                                            \
        ppr_start_l##L(int64_t num_nodes, const RowSet set, const float* restart, float* current, float* next) { \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                          \
        if (at >= num_nodes * L) return;                                                                         \
        const int64_t row = at / L;                                                                              \
        current[at] = set.holds(row) ? restart[set.index(row) * L + at % L] : 0.0f;                              \
        next[at] = 0.0f;                                                                                         \
    }                                                                                                            \
    HOPFUSE_SEGMENTS(plain, edges_plain, L)                                                                      \
    HOPFUSE_SEGMENTS(weighted, edges_weighted, L)                                                                \
    HOPFUSE_SEGMENTS(typed, edges_typed, L)                                                                      \
    HOPFUSE_SEGMENTS(per_type, edges_per_type, L)                                                                \
    HOPFUSE_PASS(plain, edges_plain, L)                                                                          \
    HOPFUSE_PASS(weighted, edges_weighted, L)                                                                    \
    HOPFUSE_PASS(typed, edges_typed, L)                                                                          \
    HOPFUSE_PASS(per_type, edges_per_type, L)

HOPFUSE_LANES(4)
HOPFUSE_LANES(8)
HOPFUSE_LANES(16)
HOPFUSE_LANES(32)
