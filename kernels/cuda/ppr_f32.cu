// Batched Personalized PageRank, float32 walk. Contract and order of operations: hopfuse/ppr.h; the CPU's kernels in
// kernels/cpu/ppr_*.h give the same bits. L queries (4, 8, 16 or 32) walk together: state[node][lane].
#include "arguments/ppr_f32.h"
#include "ppr_ends.h"
#include "ppr_rows.h"

namespace hopfuse {

constexpr int PASS_THREADS = 256;

// Writes what all rows of a lane have in common to shared memory. Called by whole blocks.
template <int L>
HOPFUSE_DEVICE void read_factors(const PassArguments& t, const PprStep& step, LaneFactors* factors) {
    const int lane = static_cast<int>(threadIdx.x);
    if (lane < 32) {
        const unsigned walking = __ballot_sync(WHOLE_WARP, t.decision.walking[lane % L] != 0);
        if (lane == 0) factors->walking = walking;
    }
    if (lane < L) {
        factors->damping[lane] = t.damping[lane];
        factors->omega[lane] = step.omega == nullptr || t.accelerates[lane] == 0 ? 1.0f : step.omega[lane];
        if (step.measured != nullptr) factors->exponent[lane] = GrainSum(t.anchor[lane]).exponent;
    }
    __syncthreads();
}

// A bit for each of four lanes that walks.
HOPFUSE_DEVICE unsigned walking_lanes(const LaneFactors& factors, int four) {
    return factors.walking >> 4 * four & 0xfu;
}

// Four lanes in an order that a loop can use.
struct FourValues {
    float of[4];

    __device__ explicit FourValues(const float4& all) : of{all.x, all.y, all.z, all.w} {}
    __device__ float4 all() const { return make_float4(of[0], of[1], of[2], of[3]); }
};

// What the end of a row needs besides its sum, read before its entries.
struct RowInputs {
    float4 before;
    float factor;  // that of all lanes
};

// Whether a row of the state before the current one may not be 0. There is none before the first pass, and the first full pass finds
// only those rows that passes before it have written.
HOPFUSE_DEVICE bool has_before(const PprStep& step, int64_t row) {
    return step.number > 1 && (step.before == nullptr || holds_row(step.before, row));
}

template <int L>
HOPFUSE_DEVICE RowInputs read_inputs(const PassArguments& t, const PprStep& step, int64_t row, int four,
                                     bool has_before) {
    const bool has_factor = t.factor != nullptr && t.rows.per_lane == 0;
    return RowInputs{has_before ? read_four(step.next, row * row_threads<L> + four) : four_times(0.0f),
                     has_factor ? t.factor[row] : 1.0f};
}

// What follows from a row's sum: z and the next state of each lane, which is the one before it where a lane does not walk.
struct RowEnd {
    float4 z, next;
};

template <int L>
HOPFUSE_DEVICE RowEnd end_of_row(const PassArguments& t, const PprStep& step, const LaneFactors& factors, int64_t row,
                                 int four, const RowInputs& inputs, const float4& state, const float4& sum,
                                 bool is_empty) {
    const int64_t at = row * row_threads<L> + four;
    const bool restarts = holds_row(t.restart_rows.words, row);
    const float4 restart =
        restarts ? read_four(t.restart, index_of_row(t.restart_rows, row) * row_threads<L> + four) : four_times(0.0f);
    const bool has_factors = t.factor != nullptr && t.rows.per_lane != 0;
    const float4 own = has_factors ? read_four(t.factor, at) : four_times(inputs.factor);
    const float4 factor = multiply(own, read_four(factors.damping, four));
    const FourValues z(multiply_add_four(factor, multiply_add_four(four_times(1.0f), sum, four_times(0.0f)), restart));
    const FourValues omega(read_four(factors.omega, four)), before(inputs.before), current(state);
    const unsigned walks = walking_lanes(factors, four);
    FourValues next = z;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        // Without a restart a node of degree 0 has no mass in either case.
        const bool is_lone = is_empty || (restarts && t.scale64 != nullptr && !(t.scale64[4 * at + i] > 0.0));
        if (step.omega != nullptr && !is_lone) next.of[i] = fmaf(omega.of[i], z.of[i] - before.of[i], before.of[i]);
        if ((walks >> i & 1u) == 0) next.of[i] = current.of[i];
    }
    return RowEnd{z.all(), next.all()};
}

// The sum of a row, or of its segments if it is long, for the threads of the row. Called by whole warps.
template <int L, int Ahead>
HOPFUSE_DEVICE float4 with_segments(const PassArguments& t, int64_t row, bool is_long, const float4& sum) {
    const int lane = static_cast<int>(threadIdx.x) % 32, four = lane % row_threads<L>;
    float4 all = sum;
    HOPFUSE_ROLLED
    for (unsigned left = __ballot_sync(WHOLE_WARP, is_long && four == 0); left != 0; left &= left - 1) {
        const int leader = __ffs(static_cast<int>(left)) - 1;
        const int64_t at = index_of_row(t.long_rows, __shfl_sync(WHOLE_WARP, row, leader));
        const float own = sum_of_segments<L, float, Ahead>(t.segments, at, lane % L, t.partial);
        FourValues lanes(sum);
#pragma unroll
        for (int i = 0; i < 4; ++i) lanes.of[i] = __shfl_sync(WHOLE_WARP, own, 4 * four + i);
        if (lane - four == leader) all = lanes.all();
    }
    return all;
}

// The rows of a pass, for sum_spans.
template <int L, int Ahead>
struct PassRows {
    const PassArguments& t;
    const PprStep& step;
    PassShared* shared;

    __device__ int four() const { return static_cast<int>(threadIdx.x) % row_threads<L>; }
    __device__ unsigned walks() const { return walking_lanes(shared->factors, four()); }
    __device__ int64_t count() const { return t.num_nodes; }
    __device__ EntrySpan span(int64_t row) const { return EntrySpan(t.rows.indptr[row], t.rows.indptr[row + 1]); }
    __device__ RowInputs read(int64_t row) const {
        if (row >= t.num_nodes) return RowInputs{};
        return read_inputs<L>(t, step, row, four(), step.omega != nullptr && has_before(step, row));
    }
    __device__ void take(int64_t row, int length, const RowInputs& inputs, const float4& own) const {
        const float4 sum = with_segments<L, Ahead>(t, row, length > PPR_SEGMENT, own);
        if (row >= t.num_nodes) return;
        const int64_t at = row * row_threads<L> + four();
        const bool needs_state = step.measured != nullptr || walks() != 0xfu;
        const float4 state = needs_state ? read_four(step.current, at) : four_times(0.0f);
        const RowEnd end = end_of_row<L>(t, step, shared->factors, row, four(), inputs, state, sum, length == 0);
        store_four(step.next + at * 4, end.next);
        if (step.measured != nullptr) measure(row, FourValues(end.z), FourValues(state));
    }
    // |z - y|, by the degree, and the largest over the node weight.
    __device__ void measure(int64_t row, const FourValues& z, const FourValues& y) const {
        MeasuredFour* const found = shared->found + threadIdx.x;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if ((walks() >> i & 1u) == 0) continue;
            const int64_t at = row * L + 4 * four() + i;
            const float change = fabsf(z.of[i] - y.of[i]);
            const float weight = t.degree == nullptr ? 1.0f : t.degree[t.rows.per_lane ? at : row];
            GrainSum sum(shared->factors.exponent[4 * four() + i], found->whole[i], found->grains[i]);
            sum.add(weight * change);
            sum.carry();
            found->whole[i] = sum.whole, found->grains[i] = sum.grains;
            const float share = t.attraction == nullptr ? change : over_attraction(change, t.attraction[at]);
            found->largest[i] = share > found->largest[i] ? share : found->largest[i];
        }
    }
};

// All rows of a pass, by all blocks of a launch, after read_factors.
template <int L, int Kind>
HOPFUSE_DEVICE void pass(const PassArguments& t, const PprStep& step, PassShared* shared) {
    if (step.measured != nullptr) shared->found[threadIdx.x] = MeasuredFour{};
    constexpr int ahead = Kind <= edges_weighted && L > 8 ? 16 : 8;  // more would be spilled
    const PassRows<L, ahead> rows = {t, step, shared};
    sum_spans<L, Kind>(t.rows, step.current, rows.walks() != 0, rows);
}

// Joins what a measured pass found, and ends lanes. Called by whole blocks.
template <int L>
HOPFUSE_DEVICE void end_pass(const PassArguments& a, const PprStep& step, PassShared* shared) {
    const int lane = static_cast<int>(threadIdx.x) % L;
    const int exponent = shared->factors.exponent[lane];
    Measured own = {0.0, 0.0};
    __syncthreads();
    for (int thread = lane / 4 + static_cast<int>(threadIdx.x) / L * row_threads<L>; thread < PASS_THREADS;
         thread += PASS_THREADS / 4) {
        const MeasuredFour& found = shared->found[thread];
        own.join(Measured{GrainSum(exponent, found.whole[lane % 4], found.grains[lane % 4]).value(),
                          widened(found.largest[lane % 4])});
    }
    end_measured<L>(a, step, own, &shared->join);
}

// The segments of rows longer than one, for sum_spans.
template <int L>
struct SegmentSums {
    const LongRows& segments;
    int64_t num_segments;
    float* partial;
    int four;

    struct None {};
    __device__ int64_t count() const { return num_segments; }
    __device__ EntrySpan span(int64_t segment) const {
        return EntrySpan(segments.begin[segment], segments.end[segment]);
    }
    __device__ None read(int64_t) const { return None{}; }
    __device__ void take(int64_t segment, int, None, const float4& sum) const {
        if (segment < num_segments) store_four(partial + (segment * row_threads<L> + four) * 4, sum);
    }
};

// The sums of the segments of long rows, by all blocks of a launch.
template <int L, int Kind>
HOPFUSE_DEVICE void sum_segments(const SegmentArguments& a) {
    const WarpPlace place;
    if (a.segments.allowed == nullptr) {
        const SegmentSums<L> sums = {a.segments, a.num_segments, a.partial, place.lane % row_threads<L>};
        return sum_spans<L, Kind>(a.rows, a.state, true, sums);
    }
    HOPFUSE_ROLLED
    for (int64_t at = place.warp * 32 + place.lane; at < a.num_segments * L; at += place.warps * 32) {
        const int lane = static_cast<int>(at % L);
        masked_segment<L>(a.segments, at / L, lane, a.partial,
                          [&](int64_t e, float acc) { return add_entry<L, Kind>(a.rows, a.state, e, lane, acc); });
    }
}

// Runs passes until no lane walks. Called by all blocks of a cooperative launch. The step is in shared memory, because registers
// are few.
template <int L, int Kind>
HOPFUSE_DEVICE void walk(const WalkArguments& a, PassShared* shared) {
    const PassArguments& t = a.passes;
    PprStep& step = shared->step;
    HOPFUSE_ROLLED
    for (int64_t number = t.step.number; number <= a.last; ++number) {
        if (number > t.step.number) grid_barrier(a.barrier);
        if (*t.decision.left == 0) return;
        if (threadIdx.x == 0) {
            const int64_t done = number - t.step.number;
            step = t.step;
            step.number = number;
            step.current = done % 2 == 0 ? a.state : t.step.next;
            step.next = done % 2 == 0 ? t.step.next : a.state;
            if (step.omega != nullptr) step.omega += done * L;
            if (done > 0) step.before = nullptr;
            if (number < a.first_measured) step.measured = nullptr;
        }
        __syncthreads();
        if (a.num_segments > 0) {
            sum_segments<L, Kind>(
                SegmentArguments{t.rows, t.segments, step.current, a.num_segments, t.decision.left, t.partial});
            grid_barrier(a.barrier);
        }
        read_factors<L>(t, step, &shared->factors);
        pass<L, Kind>(t, step, shared);
        if (step.measured != nullptr) end_pass<L>(t, step, shared);
    }
}

// The start of a walk in a warp's tile of rows.
template <int L>
HOPFUSE_DEVICE void start(const StartArguments& a) {
    const WarpPlace place;
    const int64_t first = place.warp * PPR_TILE;
    if (first >= a.num_nodes) return;
    const int four = place.lane % row_threads<L>;
    const uint64_t word = a.restart_rows.words[place.warp];
    const bool all = a.all != 0 || *a.left == 0;
    if (word == 0 && !all) return;
    const int64_t rank = word == 0 ? 0 : a.restart_rows.rank[place.warp];  // written for words that have rows alone
    HOPFUSE_ROLLED
    for (int i = place.lane / row_threads<L>; i < PPR_TILE; i += warp_rows<L>) {
        const int64_t row = first + i;
        const bool restarts = (word >> i & 1u) != 0;
        if (row >= a.num_nodes || (!restarts && !all)) continue;
        const int64_t at = rank + __popcll(word & ((static_cast<uint64_t>(1) << i) - 1));
        const float4 own = restarts ? read_four(a.restart, at * row_threads<L> + four) : four_times(0.0f);
        store_four(a.current + (row * row_threads<L> + four) * 4, own);
    }
}

// Rows, or segments, that a warp of one of the first passes has, and tiles of a block.
template <int L>
constexpr int early_rows = warp_rows<L> > EARLY_ROWS ? warp_rows<L> : EARLY_ROWS;
template <int L>
constexpr int early_tiles = early_rows<L> * (PASS_THREADS / 32) / PPR_TILE;

// The rows of a warp, in one of the first passes: finds entries with nonzero sources, and computes only rows that have one, restart,
// or are nonzero already. Others are 0, which only the last of these passes writes. `reached` is shared memory, a word for each tile of
// the block.
template <int L>
HOPFUSE_DEVICE void early_pass(const EarlyPassArguments& a, const LaneFactors& factors, unsigned long long* reached) {
    const PassArguments& t = a.walk;
    const WarpPlace place;
    const int four = place.lane % row_threads<L>;
    const unsigned walks = walking_lanes(factors, four);
    const int64_t first = place.warp * early_rows<L>, own = first + place.lane;
    const bool is_row = place.lane < early_rows<L> && own < t.num_nodes;
    const EntrySpan span = is_row ? EntrySpan(t.rows.indptr[own], t.rows.indptr[own + 1]) : EntrySpan(0, 0);
    uint64_t some = 0;
    if (is_row) {
        some = t.restart_rows.words[own >> 6] | t.long_rows.words[own >> 6] | a.nonzero.words[own >> 6];
        if (t.step.before != nullptr) some |= t.step.before[own >> 6];
    }
    const int length = span.length();
    const uint64_t marks =
        mark_entries<early_rows<L>>(t.rows, a.nonzero.words, span.begin, length > PPR_SEGMENT ? 0 : length);
    const unsigned chosen = __ballot_sync(WHOLE_WARP, marks != 0 || (some >> (own & 63) & 1u) != 0);
    HOPFUSE_ROLLED
    for (int at = 0; at < early_rows<L>; at += warp_rows<L>) {
        const int index = at + place.lane / row_threads<L>;
        const int64_t row = first + index;
        const bool is_chosen = (chosen >> index & 1u) != 0;
        float* const next_four = t.step.next + (row * row_threads<L> + four) * 4;
        if (a.fills != 0 && !is_chosen && row < t.num_nodes) store_four(next_four, four_times(0.0f));
        if (!__any_sync(WHOLE_WARP, is_chosen)) continue;
        const int64_t begin = __shfl_sync(WHOLE_WARP, span.begin, index);
        const int count = __shfl_sync(WHOLE_WARP, length, index);
        const uint64_t counts = __shfl_sync(WHOLE_WARP, marks, index);
        const bool was_nonzero = is_chosen && has_before(t.step, row);
        RowInputs inputs = {};
        if (is_chosen) inputs = read_inputs<L>(t, t.step, row, four, was_nonzero);
        float4 sum = four_times(0.0f);
        if (is_chosen && walks != 0) sum = sum_marked<L>(t.rows, a.nonzero.kind, t.step.current, begin, counts, four);
        sum = with_segments<L, 4>(t, row, is_chosen && count > PPR_SEGMENT, sum);
        if (!is_chosen) continue;
        const bool needs_state = walks != 0xfu && holds_row(a.nonzero.words, row);
        const float4 state = needs_state ? read_four(t.step.current, row * row_threads<L> + four) : four_times(0.0f);
        const float4 next = end_of_row<L>(t, t.step, factors, row, four, inputs, state, sum, count == 0).next;
        const bool is_nonzero = next.x != 0.0f || next.y != 0.0f || next.z != 0.0f || next.w != 0.0f;
        store_four(next_four, next);  // all lanes of a row that is marked, also those that are 0
        if (is_nonzero) atomicOr(reached + row / PPR_TILE % early_tiles<L>, 1ull << (row & 63));
    }
}

// The rows of a block.
template <int L>
HOPFUSE_DEVICE void early_block(const EarlyPassArguments& a, LaneFactors* factors, unsigned long long* reached) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < early_tiles<L>) reached[thread] = 0;
    read_factors<L>(a.walk, a.walk.step, factors);
    early_pass<L>(a, *factors, reached);
    __syncthreads();
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * early_tiles<L> + thread;
    if (thread < early_tiles<L> && tile * PPR_TILE < a.walk.num_nodes) a.reached[tile] = reached[thread];
}

// The sum of a masked lane's segment, as masked_segment has it. Called by whole warps, whose first L threads are the lanes.
template <int L>
HOPFUSE_DEVICE void early_masked_segment(const EarlySegmentArguments& a, int64_t segment) {
    const SegmentArguments& t = a.walk;
    const LongRows& r = t.segments;
    const int thread = static_cast<int>(threadIdx.x) % 32, lane = thread % L;
    uint64_t bits = r.allowed[segment * L + lane];
    const int32_t before = r.before[segment * L + lane];
    const int32_t earlier = (PPR_SEGMENT - before % PPR_SEGMENT) % PPR_SEGMENT;
    const bool begins = thread < L && earlier < __popcll(bits);
    for (int32_t i = 0; i < earlier; ++i) bits &= bits - 1;
    const int64_t row = r.row_of[segment], last = r.first_of[row + 1];
    float acc = 0.0f;
    int left = begins ? PPR_SEGMENT : 0;
    HOPFUSE_ROLLED
    for (int64_t at = segment; at < last && __any_sync(WHOLE_WARP, left > 0); ++at) {
        const EntrySpan span(r.begin[at], r.end[at]);
        const uint64_t marks =
            __shfl_sync(WHOLE_WARP, mark_entries<1>(t.rows, a.nonzero.words, span.begin, span.length()), 0);
        if (left <= 0) continue;
        if (at > segment) bits = r.allowed[at * L + lane];
        HOPFUSE_ROLLED
        for (uint64_t some = bits & marks; some != 0; some &= some - 1) {
            if (__popcll(bits & (some ^ (some - 1))) > left) break;
            const int64_t e = span.begin + __ffsll(static_cast<long long>(some)) - 1;
            acc = add_entry<L>(t.rows, a.nonzero.kind, t.state, e, lane, acc);
        }
        left -= __popcll(bits);
    }
    if (begins) t.partial[(r.first_of[row] + (before + earlier) / PPR_SEGMENT) * L + lane] = acc;
}

// sum_segments of a state with few nonzero rows: the segments of a warp or, of masked lanes, its segment.
template <int L>
HOPFUSE_DEVICE void early_segments(const EarlySegmentArguments& a) {
    const SegmentArguments& t = a.walk;
    const WarpPlace place;
    if (t.segments.allowed != nullptr) {
        if (place.warp < t.num_segments) early_masked_segment<L>(a, place.warp);
        return;
    }
    const int64_t first = place.warp * early_rows<L>, own = first + place.lane;
    const bool is_segment = place.lane < early_rows<L> && own < t.num_segments;
    const EntrySpan span = is_segment ? EntrySpan(t.segments.begin[own], t.segments.end[own]) : EntrySpan(0, 0);
    const uint64_t marks = mark_entries<early_rows<L>>(t.rows, a.nonzero.words, span.begin, span.length());
    HOPFUSE_ROLLED
    for (int at = 0; at < early_rows<L>; at += warp_rows<L>) {
        const int index = at + place.lane / row_threads<L>, four = place.lane % row_threads<L>;
        const int64_t begin = __shfl_sync(WHOLE_WARP, span.begin, index);
        const uint64_t counts = __shfl_sync(WHOLE_WARP, marks, index);
        const float4 sum = sum_marked<L>(t.rows, a.nonzero.kind, t.state, begin, counts, four);
        if (first + index < t.num_segments) store_four(t.partial + ((first + index) * row_threads<L> + four) * 4, sum);
    }
}

}  // namespace hopfuse

using namespace hopfuse;

// Blocks per multiprocessor: other warps hide the latency of the gathers.
#define HOPFUSE_PASS_BLOCKS(kind, L) (kind >= edges_typed ? 3 : 4)

// ppr_segments_KIND_lL: the sums of segments of long rows.
//   Unit: a segment of one row and four lanes; a thread (of masked lanes, a segment and a lane). Block: 256. Shared memory: 0.
//   Registers: <= 64 (occupancy 50 %).
//   Bytes: per segment 64 (4 + w), w = 0 where weights have codes, + 64 * 4 L gathered, 4 L written; 12 L more where lanes are masked.
// ppr_segments_typed_lL: likewise. Block: 256. Registers: <= 80 (occupancy 37 %).
// ppr_segments_per_type_lL: likewise. Block: 256. Registers: <= 80 (occupancy 37 %).
#define HOPFUSE_SEGMENTS(name, kind, L)                                             \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind, L)) \
        ppr_segments_##name##_l##L(const SegmentArguments a) {                      \
        if (*a.left != 0) sum_segments<L, kind>(a);                                 \
    }

// ppr_pass_KIND_lL: one pass over all rows: z, the next iterate, copies of frozen lanes, and (if `measured` is not null) the
// L1 residual and the largest change per lane. If it `ends` lanes, it also decides which lanes end with the pass; `left`
// counts those that continue, and `last_pass` is the pass that wrote the walk's last iterate.
//   Unit: a row and four lanes; a thread, of any number of blocks. Block: 256.
//   Shared memory: 14800 bytes (400 where nothing is measured). Registers: <= 64 (occupancy 50 %).
//   Bytes: nnz (4 + w) + 4 L nnz gathered + N (8 + 4) + 8 L N (the iterate before in, the next one out); 4 L N more
//   where residuals are measured, and 4 L N of node weights there, and 33 L a block.
// ppr_pass_typed_lL: likewise. Block: 256. Shared memory: 14800 bytes. Registers: <= 80 (occupancy 37 %).
// ppr_pass_per_type_lL: likewise. Block: 256. Shared memory: 14800 bytes. Registers: <= 80 (occupancy 37 %).
#define HOPFUSE_PASS(name, kind, L)                                                 \
    extern "C" __global__ void __launch_bounds__(256, HOPFUSE_PASS_BLOCKS(kind, L)) \
        ppr_pass_##name##_l##L(const PassArguments a) {                             \
        if (*a.decision.left == 0) return;                                          \
        HOPFUSE_DYNAMIC_SHARED(PassShared, shared);                                 \
        read_factors<L>(a, a.step, &shared->factors);                               \
        pass<L, kind>(a, a.step, shared);                                           \
        if (a.step.measured != nullptr) end_pass<L>(a, a.step, shared);             \
    }

// ppr_walk_lL: passes of a walk on a graph without edge types, to its end, in one cooperative launch, with grid barriers
// between them; the passes after the end of the last lane are left out.
//   Unit: a row and four lanes; a thread, of as many blocks as run at once. Block: 256.
//   Shared memory: 14800 bytes. Registers: <= 80 (occupancy 37 %). Bytes: those of each pass, from L2.
#define HOPFUSE_WALK(L)                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 3) ppr_walk_l##L(const WalkArguments a) { \
        HOPFUSE_DYNAMIC_SHARED(PassShared, shared);                                             \
        walk<L, edges_untyped>(a, shared);                                                      \
    }

// ppr_early_segments_lL: the sums of segments of long rows in the first passes.
//   Unit: max(8, 128 / L) segments; a warp (of masked lanes, one segment). Block: 256. Shared memory: 0.
//   Registers: <= 64 (occupancy 50 %). Bytes: 4 an entry and, if its source is nonzero, 4 L + 4 + w; 4 L a segment.
// ppr_early_lL: the first passes, which measure nothing: they read the state of nonzero rows only, and write rows that are or
//   were nonzero, and long ones.
//   Unit: max(8, 128 / L) rows; a warp. Block: 256. Shared memory: 432 bytes. Registers: <= 64 (occupancy 50 %).
//   Bytes: nnz 4 + N 8 and, of each entry whose source is nonzero, 4 L + w; 4 L of each row that becomes nonzero or, in the last of
//   these passes, of each row.
// ppr_start_lL: the start of a walk. Passes read other rows only after they have been written.
//   Unit: 64 rows; a warp. Block: 256. Shared memory: 0. Registers: <= 32. Bytes: N / 8, and 8 L for each row that restarts or, if
//   no pass before the first full one writes the others, 4 L N written.
#define HOPFUSE_LANES(L)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256) ppr_start_l##L(const StartArguments a) { start<L>(a); }     \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_early_segments_l##L(const EarlySegmentArguments a) { \
        if (*a.walk.left != 0) early_segments<L>(a);                                                              \
    }                                                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 4) ppr_early_l##L(const EarlyPassArguments a) {             \
        __shared__ __align__(16) LaneFactors factors;                                                             \
        __shared__ unsigned long long reached[early_tiles<L>];                                                    \
        if (*a.walk.decision.left != 0) early_block<L>(a, &factors, reached);                                     \
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
