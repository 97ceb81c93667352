// Batched Personalized PageRank, float32 walk. Contract and order of operations: hopfuse/ppr.h; the CPU's kernels in
// kernels/cpu/ppr_*.h give the same bits. L queries (4, 8, 16 or 32) walk together: state[node][lane].
#include "arguments/ppr_f32.h"
#include "ppr_ends.h"
#include "ppr_walk.h"

namespace hopfuse {

constexpr int PASS_THREADS = 256;

template <int L>
HOPFUSE_DEVICE Share share_of_nonzero(const NonzeroRows& nonzero, const DeviceRows& rows, const float* state, int64_t e,
                                      int lane) {
    if (nonzero.kind == edges_plain) return share_of_entry<L, edges_plain>(rows, state, e, lane);
    if (nonzero.kind == edges_weighted) return share_of_entry<L, edges_weighted>(rows, state, e, lane);
    if (nonzero.kind == edges_typed) return share_of_entry<L, edges_typed>(rows, state, e, lane);
    return share_of_entry<L, edges_per_type>(rows, state, e, lane);
}

template <int L, int Kind>
HOPFUSE_DEVICE float row_sum(const PassArguments& t, const float* current, int64_t row, int64_t begin, int64_t end,
                             int lane) {
    if (end - begin <= PPR_SEGMENT) return 0.0f + segment_sum<L, Kind>(t.rows, current, begin, end, lane);
    return sum_of_segments<L>(t.segments, index_of_row(t.long_rows, row), lane, t.partial);
}

// What a lane keeps in registers for all its rows.
struct LaneState {
    int lane;
    bool walks;
    float damping, omega;
};

HOPFUSE_DEVICE LaneState lane_state(const PassArguments& t, const PprStep& step, int lane) {
    const float omega = step.omega == nullptr || t.accelerates[lane] == 0 ? 1.0f : step.omega[lane];
    return LaneState{lane, t.decision.walking[lane] != 0, t.damping[lane], omega};
}

// What follows from a row's sum: z, and whether the next state also depends on the one before.
struct RowEnd {
    float z;
    bool recurs;
};

template <int L>
HOPFUSE_DEVICE RowEnd end_of_row(const PassArguments& t, const PprStep& step, int64_t row, const LaneState& own,
                                 float s, bool is_empty) {
    const int64_t at = row * L + own.lane;
    const float gd = t.factor == nullptr ? own.damping : t.factor[t.rows.per_lane ? at : row] * own.damping;
    const bool restarts = holds_row(t.restart_rows.words, row);
    const float b = restarts ? t.restart[index_of_row(t.restart_rows, row) * L + own.lane] : 0.0f;
    // Without a restart a node of degree 0 has no mass in either case.
    const bool is_lone = is_empty || (restarts && t.scale64 != nullptr && !(t.scale64[at] > 0.0));
    return RowEnd{fmaf(gd, s, b), step.omega != nullptr && !is_lone};
}

// One row of one lane: writes `next`, returns |z - y|, not yet divided by the node weight.
template <int L, int Kind>
HOPFUSE_DEVICE float pass_row(const PassArguments& t, const PprStep& step, int64_t row, const LaneState& own) {
    const int lane = own.lane;
    const int64_t at = row * L + lane, begin = t.rows.indptr[row], end = t.rows.indptr[row + 1];
    float s = 0.0f;
    if (own.walks || read_together<L, Kind>) s = row_sum<L, Kind>(t, step.current, row, begin, end, lane);
    if (!own.walks) {
        step.next[at] = step.current[at];
        return 0.0f;
    }
    const RowEnd found = end_of_row<L>(t, step, row, own, s, begin == end);
    float following = found.z;
    if (found.recurs) {
        const float before = step.next[at];
        following = fmaf(own.omega, found.z - before, before);
    }
    step.next[at] = following;
    return step.measured != nullptr ? fabsf(found.z - step.current[at]) : 0.0f;
}

// The rows of the thread's lane: first, first + stride, and so on below last; at most 64 unless `Many`. Returns what it
// measured.
template <int L, int Kind, bool Many>
HOPFUSE_DEVICE Measured pass(const PassArguments& t, const PprStep& step, int64_t first, int64_t stride, int64_t last) {
    const bool measure = step.measured != nullptr;
    const int lane = static_cast<int>(threadIdx.x) % L;
    const LaneState own = lane_state(t, step, lane);
    GrainSum sum(measure ? t.anchor[lane] : 1.0);
    float largest = 0.0f;
    for (int64_t row = first; row < last; row += stride) {
        const float change = pass_row<L, Kind>(t, step, row, own);
        if (!measure) continue;
        const float weight = t.degree == nullptr ? 1.0f : t.degree[t.rows.per_lane ? row * L + lane : row];
        sum.add(weight * change);
        if (Many) sum.carry();
        const float share = t.attraction == nullptr ? change : over_attraction(change, t.attraction[row * L + lane]);
        largest = share > largest ? share : largest;
    }
    return Measured{sum.value(), widened(largest)};
}

// One pass, by a block for each tile.
template <int L, int Kind>
HOPFUSE_DEVICE Measured pass_tile(const PassArguments& t) {
    const TileRange tile(blockIdx.x, t.num_nodes);
    return pass<L, Kind, false>(t, t.step, tile.first + threadIdx.x / L, PASS_THREADS / L, tile.last);
}

// Sums a segment of a row longer than one, for entry `at` of `partial`.
template <int L, int Kind>
HOPFUSE_DEVICE void sum_segment(const DeviceRows& rows, const LongRows& r, const float* state, int64_t at,
                                float* partial) {
    const int64_t segment = at / L;
    const int lane = static_cast<int>(at % L);
    if (r.allowed != nullptr)
        return masked_segment<L>(r, segment, lane, partial, [&](int64_t e, float acc) {
            return share_of_entry<L, Kind>(rows, state, e, lane).plus(acc);
        });
    partial[at] = segment_sum<L, Kind>(rows, state, r.begin[segment], r.end[segment], lane);
}

// Runs passes until no lane walks. Called by all blocks of a cooperative launch.
template <int L, int Kind>
HOPFUSE_DEVICE void walk(const WalkArguments& a, JoinShared* shared) {
    const PassArguments& t = a.passes;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * PASS_THREADS + threadIdx.x;
    const int64_t threads = static_cast<int64_t>(gridDim.x) * PASS_THREADS;
    PprStep step = t.step;
    float *current = a.state, *next = step.next;
    HOPFUSE_ROLLED
    for (; step.number <= a.last; ++step.number) {
        if (step.number > t.step.number) grid_barrier(a.barrier);
        if (*t.decision.left == 0) return;
        step.current = current, step.next = next;
        if (a.num_segments > 0) {
            HOPFUSE_ROLLED
            for (int64_t at = first; at < a.num_segments * L; at += threads)
                sum_segment<L, Kind>(t.rows, t.segments, current, at, t.partial);
            grid_barrier(a.barrier);
        }
        step.measured = step.number < a.first_measured ? nullptr : t.step.measured;
        const Measured own = pass<L, Kind, true>(t, step, first / L, threads / L, t.num_nodes);
        if (step.measured != nullptr) end_pass<L>(t, step, own, shared);
        if (step.omega != nullptr) step.omega += L;
        float* const written = next;
        next = current, current = written;
    }
}

// The sum over entries begin .. end - 1, at most a segment, of a state with few nonzero rows.
template <int L>
HOPFUSE_DEVICE float sparse_sum(const DeviceRows& rows, const float* state, const NonzeroRows& nonzero, int64_t begin,
                                int64_t end, int lane) {
    constexpr int ahead = 4;
    float acc = 0.0f;
    HOPFUSE_ROLLED
    for (int64_t first = begin; first < end; first += ahead) {
        bool counts[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const bool is_entry = first + i < end;
            counts[i] = holds_row(nonzero.words, rows.indices[is_entry ? first + i : first]) && is_entry;
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i)
            if (counts[i]) acc = share_of_nonzero<L>(nonzero, rows, state, first + i, lane).plus(acc);
    }
    return acc;
}

// One row of one lane in one of the first passes. Returns the next state, and writes it unless it is 0 and there already.
template <int L>
HOPFUSE_DEVICE float early_row(const EarlyPassArguments& a, int64_t row, const LaneState& own) {
    const PassArguments& t = a.walk;
    const PprStep& step = t.step;
    const int64_t at = row * L + own.lane, begin = t.rows.indptr[row], end = t.rows.indptr[row + 1];
    const bool has_before = a.before != nullptr && holds_row(a.before, row);
    float following;
    if (own.walks) {
        const float s = end - begin <= PPR_SEGMENT
                            ? 0.0f + sparse_sum<L>(t.rows, step.current, a.nonzero, begin, end, own.lane)
                            : sum_of_segments<L>(t.segments, index_of_row(t.long_rows, row), own.lane, t.partial);
        const RowEnd found = end_of_row<L>(t, step, row, own, s, begin == end);
        const float before = has_before ? step.next[at] : 0.0f;
        following = found.recurs ? fmaf(own.omega, found.z - before, before) : found.z;
    } else {
        following = holds_row(a.nonzero.words, row) ? step.current[at] : 0.0f;
    }
    if (following != 0.0f || has_before) step.next[at] = following;
    return following;
}

// One tile in all lanes; `reached` is shared memory.
template <int L>
HOPFUSE_DEVICE void early_pass(const EarlyPassArguments& a, unsigned long long* reached) {
    const TileRange tile(blockIdx.x, a.walk.num_nodes);
    const LaneState own = lane_state(a.walk, a.walk.step, static_cast<int>(threadIdx.x) % L);
    if (threadIdx.x == 0) *reached = 0;
    __syncthreads();
    for (int64_t row = tile.first + threadIdx.x / L; row < tile.last; row += PASS_THREADS / L)
        if (early_row<L>(a, row, own) != 0.0f) atomicOr(reached, 1ull << (row & 63));
    __syncthreads();
    if (threadIdx.x == 0) a.reached[blockIdx.x] = *reached;
}

// sum_segment of a state with few nonzero rows.
template <int L>
HOPFUSE_DEVICE void early_segment(const EarlySegmentArguments& a, int64_t at) {
    const SegmentArguments& t = a.walk;
    const LongRows& r = t.segments;
    const int64_t segment = at / L;
    const int lane = static_cast<int>(at % L);
    if (r.allowed != nullptr)
        return masked_segment<L>(r, segment, lane, t.partial, [&](int64_t e, float acc) {
            if (!holds_row(a.nonzero.words, t.rows.indices[e])) return acc;
            return share_of_nonzero<L>(a.nonzero, t.rows, t.state, e, lane).plus(acc);
        });
    t.partial[at] = sparse_sum<L>(t.rows, t.state, a.nonzero, r.begin[segment], r.end[segment], lane);
}

}  // namespace hopfuse

using namespace hopfuse;

// Blocks per multiprocessor: other warps hide the latency of the gathers. sm_75 has at most 1024 threads. With five blocks,
// sm_80 to sm_89 would spill registers where a row's lanes read weighted entries together.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 800
#define HOPFUSE_PASS_BLOCKS(kind, L) 4
#elif __CUDA_ARCH__ < 900
#define HOPFUSE_PASS_BLOCKS(kind, L) (kind == edges_per_type || (kind == edges_weighted && L <= 8) ? 4 : 5)
#else
#define HOPFUSE_PASS_BLOCKS(kind, L) (kind == edges_per_type ? 4 : 5)
#endif

// ppr_segments_KIND_lL: the sums of segments of long rows.
//   Unit: a segment of one row and a lane; a thread. Block: 256. Shared memory: 0. Registers: <= 64 (occupancy 50 %).
//   Bytes: per segment 64 (4 + w) + 64 * 4 L gathered, 4 L written; 12 L more where lanes are masked.
#define HOPFUSE_SEGMENTS(name, kind, L)                                                 \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind, L))     \
        ppr_segments_##name##_l##L(const SegmentArguments a) {                          \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; \
        if (*a.left == 0 || at >= a.num_segments * L) return;                           \
        sum_segment<L, kind>(a.rows, a.segments, a.state, at, a.partial);               \
    }

// ppr_pass_KIND_lL: one pass over all rows: z, the next iterate, copies of frozen lanes, and (if `measured` is not null) the
// L1 residual and the largest change per lane. If it `ends` lanes, it also decides which lanes end with the pass; `left`
// counts those that continue, and `last_pass` is the pass that wrote the walk's last iterate.
//   Unit: a tile of 64 rows; a block of 256 threads, L neighbours for the L lanes of a row. Block: 256.
//   Shared memory: 2056 bytes (none where nothing is measured). Registers: <= 64 (occupancy 50 %).
//   Bytes: nnz (4 + w) + 4 L nnz gathered + N (8 + 4) + 8 L N (the iterate before in, the next one out); 4 L N more
//   where residuals are measured, and 4 L N of node weights there, and 33 L a tile.
#define HOPFUSE_PASS(name, kind, L)                                                 \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind, L)) \
        ppr_pass_##name##_l##L(const PassArguments a) {                             \
        if (*a.decision.left == 0) return;                                          \
        const Measured own = pass_tile<L, kind>(a);                                 \
        if (a.step.measured == nullptr) return;                                     \
        HOPFUSE_DYNAMIC_SHARED(JoinShared, shared);                                 \
        end_pass<L>(a, a.step, own, shared);                                        \
    }

// ppr_walk_lL: passes of a walk on a graph without edge types, to its end, in one cooperative launch, with grid barriers
// between them; the passes after the end of the last lane are left out.
//   Unit: a row and a lane; a thread, of as many blocks as run at once. Block: 256.
//   Shared memory: 2056 bytes. Registers: <= 64 (occupancy 50 %). Bytes: those of each pass, from L2.
#define HOPFUSE_WALK(L)                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_walk_l##L(const WalkArguments a) { \
        HOPFUSE_DYNAMIC_SHARED(JoinShared, shared);                                             \
        walk<L, edges_untyped>(a, shared);                                                      \
    }

// ppr_early_segments_lL: the sums of segments of long rows in the first passes.
//   Unit: a segment of one row and a lane; a thread. Block: 256. Shared memory: 0. Registers: <= 64 (occupancy 50 %).
//   Bytes: 4 an entry and, if its source is nonzero, 4 L + w; 4 L a segment.
// ppr_early_lL: the first passes, which measure nothing: they read the state of nonzero rows only, and write rows that are or
//   were nonzero.
//   Unit: a tile of 64 rows; a block of 256 threads, L neighbours for the L lanes of a row. Block: 256.
//   Shared memory: 16 bytes. Registers: <= 64 (occupancy 50 %).
//   Bytes: nnz 4 + N 8 and, of each entry whose source is nonzero, 4 L + w; 4 L of each row that becomes nonzero.
// ppr_start_lL: the start of a walk.
//   Unit: an entry of the state; a thread. Block: 256. Shared memory: 0. Registers: <= 32. Bytes: 8 L N written.
#define HOPFUSE_LANES(L)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                             \
        ppr_start_l##L(int64_t num_nodes, const RowSet set, const float* restart, float* current, float* next) {  \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                           \
        if (at >= num_nodes * L) return;                                                                          \
        const int64_t row = at / L;                                                                               \
        current[at] = holds_row(set.words, row) ? restart[index_of_row(set, row) * L + at % L] : 0.0f;            \
        next[at] = 0.0f;                                                                                          \
    }                                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_early_segments_l##L(const EarlySegmentArguments a) { \
        const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                           \
        if (*a.walk.left != 0 && at < a.walk.num_segments * L) early_segment<L>(a, at);                           \
    }                                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_early_l##L(const EarlyPassArguments a) {             \
        __shared__ unsigned long long reached;                                                                    \
        if (*a.walk.decision.left != 0) early_pass<L>(a, &reached);                                               \
    }                                                                                                             \
    HOPFUSE_SEGMENTS(plain, edges_plain, L)                                                                       \
    HOPFUSE_SEGMENTS(weighted, edges_weighted, L)                                                                 \
    HOPFUSE_SEGMENTS(typed, edges_typed, L)                                                                       \
    HOPFUSE_SEGMENTS(per_type, edges_per_type, L)                                                                 \
    HOPFUSE_PASS(plain, edges_plain, L)                                                                           \
    HOPFUSE_PASS(weighted, edges_weighted, L)                                                                     \
    HOPFUSE_PASS(typed, edges_typed, L)                                                                           \
    HOPFUSE_PASS(per_type, edges_per_type, L)                                                                     \
    HOPFUSE_WALK(L)

HOPFUSE_LANES(4)
HOPFUSE_LANES(8)
HOPFUSE_LANES(16)
HOPFUSE_LANES(32)

#define HOPFUSE_TYPES(L)                                               \
    HOPFUSE_KERNEL_TYPE(ppr_start_l##L, StartKernel);                  \
    HOPFUSE_KERNEL_TYPE(ppr_early_segments_l##L, EarlySegmentsKernel); \
    HOPFUSE_KERNEL_TYPE(ppr_early_l##L, EarlyPassKernel);              \
    HOPFUSE_KERNEL_TYPE(ppr_walk_l##L, WalkKernel);                    \
    HOPFUSE_KERNEL_TYPE(ppr_segments_plain_l##L, SegmentsKernel);      \
    HOPFUSE_KERNEL_TYPE(ppr_segments_weighted_l##L, SegmentsKernel);   \
    HOPFUSE_KERNEL_TYPE(ppr_segments_typed_l##L, SegmentsKernel);      \
    HOPFUSE_KERNEL_TYPE(ppr_segments_per_type_l##L, SegmentsKernel);   \
    HOPFUSE_KERNEL_TYPE(ppr_pass_plain_l##L, PassKernel);              \
    HOPFUSE_KERNEL_TYPE(ppr_pass_weighted_l##L, PassKernel);           \
    HOPFUSE_KERNEL_TYPE(ppr_pass_typed_l##L, PassKernel);              \
    HOPFUSE_KERNEL_TYPE(ppr_pass_per_type_l##L, PassKernel)

HOPFUSE_TYPES(4);
HOPFUSE_TYPES(8);
HOPFUSE_TYPES(16);
HOPFUSE_TYPES(32);
