// Passes of walks of at most four queries on a graph without edge types or masks: the same sums as in ppr_f32.cu, in another layout of
// entries (Slice). A thread has at most eight entries of a row, and its four lanes: it reads their states at once, by 128-bit loads,
// and the threads of a row add in turn. So a row of 64 entries waits for one gather, not for eight after each other.
#include "arguments/ppr_sliced_f32.h"
#include "ppr_ends.h"
#include "ppr_walk.h"

namespace hopfuse {

constexpr int L = SLICED_LANES;

// From 16 aligned bytes, by one load.
HOPFUSE_DEVICE Lanes load_lanes(const float* from) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    return Lanes{{four.x, four.y, four.z, four.w}};
}

HOPFUSE_DEVICE void store_lanes(float* to, const Lanes& given) {
    store_four(to, make_float4(given.of[0], given.of[1], given.of[2], given.of[3]));
}

HOPFUSE_DEVICE Lanes add_lanes(const Lanes& a, const Lanes& b) {
    Lanes sum;
#pragma unroll
    for (int lane = 0; lane < L; ++lane) sum.of[lane] = a.of[lane] + b.of[lane];
    return sum;
}

HOPFUSE_DEVICE Lanes shuffle_lanes(const Lanes& given, int thread) {
    Lanes moved;
#pragma unroll
    for (int lane = 0; lane < L; ++lane) moved.of[lane] = __shfl_sync(WHOLE_WARP, given.of[lane], thread);
    return moved;
}

HOPFUSE_DEVICE Lanes shuffle_lanes_up(const Lanes& given) {
    Lanes moved;
#pragma unroll
    for (int lane = 0; lane < L; ++lane) moved.of[lane] = __shfl_up_sync(WHOLE_WARP, given.of[lane], 1);
    return moved;
}

// What each thread has found, per lane, is in shared memory, because it is needed at the ends of rows alone.
HOPFUSE_DEVICE void clear_found(SlicedShared* shared) {
#pragma unroll
    for (int lane = 0; lane < L; ++lane) {
        shared->whole[lane][threadIdx.x] = shared->grains[lane][threadIdx.x] = 0;
        shared->largest[lane][threadIdx.x] = 0.0f;
    }
}

HOPFUSE_DEVICE GrainSum found_by(const SlicedShared* shared, int lane, int thread, double anchor) {
    GrainSum sum(anchor);
    sum.whole = shared->whole[lane][thread], sum.grains = shared->grains[lane][thread];
    return sum;
}

HOPFUSE_DEVICE void add_found(SlicedShared* shared, int lane, double anchor, float weight, float change) {
    const int thread = static_cast<int>(threadIdx.x);
    GrainSum sum = found_by(shared, lane, thread, anchor);
    sum.add(weight * change);
    sum.carry();
    shared->whole[lane][thread] = sum.whole, shared->grains[lane][thread] = sum.grains;
    const float before = shared->largest[lane][thread];
    shared->largest[lane][thread] = change > before ? change : before;
}

// What four threads have found in the lane of this one, which then joins it. Called by whole blocks.
HOPFUSE_DEVICE Measured gather_found(const SlicedShared* shared, const double* anchor) {
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % L;
    Measured all = {0.0, 0.0};
#pragma unroll
    for (int i = 0; i < L; ++i) {
        const int thread = static_cast<int>(threadIdx.x) / L + i * (SLICED_BLOCK / L);
        all.join(
            Measured{found_by(shared, lane, thread, anchor[lane]).value(), widened(shared->largest[lane][thread])});
    }
    return all;
}

// The slices of a warp: first, first + stride, and so on.
struct WarpSlices {
    int32_t first, stride;
    int thread;

    __device__ WarpSlices()
        : first(static_cast<int32_t>(blockIdx.x * (SLICED_BLOCK / SLICE_THREADS) + threadIdx.x / SLICE_THREADS)),
          stride(static_cast<int32_t>(gridDim.x * (SLICED_BLOCK / SLICE_THREADS))),
          thread(static_cast<int>(threadIdx.x) % SLICE_THREADS) {}
};

// What a thread reads of a slice before its turn: nothing of it depends on the state.
struct Ahead {
    uint32_t line, shape;
    int32_t first, row;
    int32_t source[SLICE_WIDTH];
    uint32_t place;  // of `rows`

    __device__ int width() const { return static_cast<int>(shape & 15u); }
    __device__ int log_threads() const { return static_cast<int>(shape >> 4 & 3u); }
    // How many entries the thread reads.
    __device__ int read_by(int thread) const { return thread < static_cast<int>(shape >> 8 & 63u) ? width() : 0; }
    // Of the thread's row or segment.
    __device__ int entries(bool is_long, int thread) const {
        if (!is_long) return static_cast<int>(place >> 16);
        const int segments = static_cast<int>(shape >> 8 & 63u) / 8, own = thread / 8;
        return own + 1 < segments ? PPR_SEGMENT : own + 1 == segments ? static_cast<int>(shape >> 16) : 0;
    }

    __device__ void read(const SliceTable& t, int32_t number, int thread) {
        const int4 slice = reinterpret_cast<const int4*>(t.slices)[number];
        line = static_cast<uint32_t>(slice.x), first = slice.y, row = slice.z, shape = static_cast<uint32_t>(slice.w);
        const int32_t* const from = t.source + static_cast<int64_t>(line) * SLICE_THREADS + thread;
        const int count = read_by(thread);
#pragma unroll
        for (int i = 0; i < SLICE_WIDTH; ++i) source[i] = i < count ? from[i * SLICE_THREADS] : 0;
        place = number < t.num_long ? NO_ROW : t.rows[first + (thread >> log_threads())];
    }
};

// The sum of a long row from those of its segments, `of(segment)`, for all threads of the warp.
HOPFUSE_DEVICE Lanes sum_partials(const float* partial, int32_t first, int32_t count, int thread) {
    const float* const own = partial + (static_cast<int64_t>(first) + thread) * L;
    Lanes total = {}, next = {};
    if (thread < count) next = load_lanes(own);
    HOPFUSE_ROLLED
    for (int32_t begin = 0; begin < count; begin += SLICE_THREADS) {
        const Lanes now = next;
        const int32_t after = begin + SLICE_THREADS,
                      here = count - begin < SLICE_THREADS ? count - begin : SLICE_THREADS;
        if (after + thread < count) next = load_lanes(own + static_cast<int64_t>(after) * L);
        HOPFUSE_ROLLED
        for (int32_t i = 0; i < here; ++i) total = add_lanes(total, shuffle_lanes(now, i));
    }
    return total;
}

// Writes what the lanes multiply by in a pass, the `done`-th of a launch. A barrier of the block must follow.
HOPFUSE_DEVICE void prepare_lanes(const SlicedArguments& a, int32_t done, SlicedShared* shared) {
    const PassArguments& t = a.pass;
    const int lane = static_cast<int>(threadIdx.x);
    if (lane >= L) return;
    const bool recurs = t.step.omega != nullptr && t.accelerates[lane] != 0;
    shared->omega[done % 2].of[lane] = recurs ? t.step.omega[done * L + lane] : 1.0f;
    if (done == 0) shared->damping.of[lane] = t.damping[lane];
}

// A pass, of which only this differs from the first one of a launch; pointers stay among the kernel's arguments.
struct SlicedStep {
    int32_t done;  // passes before it in this launch
    bool measures;
    unsigned walking;  // a bit for each lane

    __device__ SlicedStep(int32_t before, bool is_measured, const int4& walks)
        : done(before), measures(is_measured), walking((walks.x != 0 ? 1u : 0u) | (walks.y != 0 ? 2u : 0u) |
                                                       (walks.z != 0 ? 4u : 0u) | (walks.w != 0 ? 8u : 0u)) {}

    // Whether a row of the state before may not be 0, as has_before in ppr_f32.cu.
    __device__ bool has_before(const SlicedArguments& a, int64_t row) const {
        const PprStep& first = a.pass.step;
        return done > 0 || (first.number > 1 && (first.before == nullptr || holds_row(first.before, row)));
    }
    __device__ bool reads_current() const { return walking != 15u || measures; }
    __device__ const float* current(const SlicedArguments& a) const {
        return done % 2 == 0 ? a.state : a.pass.step.next;
    }
    __device__ float* next(const SlicedArguments& a) const { return done % 2 == 0 ? a.pass.step.next : a.state; }
};

// What a row's end reads, before its sum is there.
struct RowInputs {
    Lanes before, current;
    float factor;
    uint64_t restarts;  // the word of restart_rows

    __device__ void read(const SlicedArguments& a, const SlicedStep& step, int64_t row) {
        const PassArguments& t = a.pass;
        before = current = Lanes{};
        if (t.step.omega != nullptr && step.has_before(a, row)) before = load_lanes(step.next(a) + row * L);
        if (step.reads_current()) current = load_lanes(step.current(a) + row * L);
        factor = t.factor == nullptr ? 1.0f : t.factor[row];
        restarts = t.restart_rows.words[row >> 6];
    }
};

// From a row's sum to its next state, and what a measured pass finds.
HOPFUSE_DEVICE void end_row(const SlicedArguments& a, const SlicedStep& step, const RowInputs& in, int64_t row,
                            bool is_empty, const Lanes& sum, SlicedShared* shared) {
    const PassArguments& t = a.pass;
    Lanes b = {}, next;
    if ((in.restarts >> (row & 63) & 1u) != 0) b = load_lanes(t.restart + index_of_row(t.restart_rows, row) * L);
    const bool recurs = t.step.omega != nullptr && !is_empty;
    const float degree = !step.measures || t.degree == nullptr ? 1.0f : t.degree[row];
#pragma unroll
    for (int lane = 0; lane < L; ++lane) {
        const float gd = in.factor * shared->damping.of[lane], z = fmaf(gd, sum.of[lane], b.of[lane]);
        const bool walks = (step.walking >> lane & 1u) != 0;
        const float following =
            recurs ? fmaf(shared->omega[step.done % 2].of[lane], z - in.before.of[lane], in.before.of[lane]) : z;
        next.of[lane] = walks ? following : in.current.of[lane];
        if (step.measures && walks) add_found(shared, lane, t.anchor[lane], degree, fabsf(z - in.current.of[lane]));
    }
    store_lanes(step.next(a) + row * L, next);
}

// One pass over the slices of a warp, whose first one has been read. Reads the one after each; after the last one the first again,
// if another pass follows.
template <bool Follows>
HOPFUSE_DEVICE void sliced_pass(const SlicedArguments& a, const SlicedStep& step, const WarpSlices& own, Ahead& ahead,
                                SlicedShared* shared) {
    const SliceTable& table = a.table;
    const PassArguments& t = a.pass;
    const float* const current = step.current(a);
    HOPFUSE_ROLLED
    for (int32_t number = own.first; number < table.num_slices; number += own.stride) {
        const bool is_long = number < table.num_long;
        const int log_threads = ahead.log_threads(), width = ahead.width(), reads = ahead.read_by(own.thread);
        const int piece = own.thread & ((1 << log_threads) - 1);
        Lanes y[SLICE_WIDTH];
        float weight[SLICE_WIDTH];
#pragma unroll
        for (int i = 0; i < SLICE_WIDTH; ++i)
            if (i < reads) y[i] = load_lanes(current + static_cast<int64_t>(ahead.source[i]) * L);
        const int64_t entry = static_cast<int64_t>(ahead.line) * SLICE_THREADS + own.thread;
#pragma unroll
        for (int i = 0; i < SLICE_WIDTH; ++i) {
            weight[i] = 1.0f;
            if (i < reads && table.weight != nullptr) weight[i] = table.weight[entry + i * SLICE_THREADS];
        }
        const int32_t row = ahead.row + (is_long ? 0 : static_cast<int32_t>(ahead.place & 0xffffu));
        const int32_t in_row = ahead.first;
        const int pieces = 1 << log_threads, entries = ahead.entries(is_long, own.thread);
        const int segments = static_cast<int>(ahead.shape >> 8 & 63u) / 8;  // of a long row
        bool ends = is_long ? own.thread == SLICE_THREADS - 1 : ahead.place != NO_ROW && piece == pieces - 1;
        RowInputs inputs;
        if (ends) inputs.read(a, step, row);
        const int count = entries - piece * width < width ? entries - piece * width : width;
        const bool is_last = table.num_slices - number <= own.stride;
        if (Follows || !is_last) ahead.read(table, is_last ? own.first : number + own.stride, own.thread);
        // The threads of a row add in turn.
        Lanes sum = {};
        HOPFUSE_ROLLED
        for (int turn = 0; turn < pieces; ++turn) {
            if (turn > 0) {
                const Lanes below = shuffle_lanes_up(sum);
                if (piece == turn) sum = below;
            }
            if (piece == turn) {
#pragma unroll
                for (int i = 0; i < SLICE_WIDTH; ++i)
                    if (i < count)
#pragma unroll
                        for (int lane = 0; lane < L; ++lane)
                            sum.of[lane] = fmaf(weight[i], y[i].of[lane], sum.of[lane]);
            }
        }
        if (is_long) {
            const SliceOfLong of_long = table.of_long[number];
            if (of_long.segments > SLICE_SEGMENTS) {
                const int64_t segment = static_cast<int64_t>(in_row) * SLICE_SEGMENTS + own.thread / 8;
                if (piece == 7 && segment < of_long.segments)
                    store_lanes(t.partial + (of_long.first + segment) * L, sum);
                const unsigned warps = static_cast<unsigned>((of_long.segments + SLICE_SEGMENTS - 1) / SLICE_SEGMENTS);
                if (is_last_warp(a.arrived + (number - in_row), warps))
                    sum = sum_partials(t.partial, of_long.first, of_long.segments, own.thread);
                else ends = false;
            } else {
                Lanes total = {};
                HOPFUSE_ROLLED
                for (int i = 0; i < segments; ++i) total = add_lanes(total, shuffle_lanes(sum, 8 * i + 7));
                sum = total;
            }
        } else {
            sum = add_lanes(Lanes{}, sum);
        }
        if (ends) end_row(a, step, inputs, row, !is_long && entries == 0, sum, shared);
    }
}

// Joins what a measured pass found, and ends lanes. Called by whole blocks.
HOPFUSE_DEVICE void end_sliced_pass(const SlicedArguments& a, int64_t number, SlicedShared* shared) {
    PprStep step = a.pass.step;
    step.number = number;
    end_measured<L>(a.pass, step, gather_found(shared, a.pass.anchor), &shared->join);
}

// Runs passes until no lane walks. Called by all blocks of a cooperative launch.
HOPFUSE_DEVICE void sliced_walk(const SlicedWalkArguments& a, SlicedShared* shared) {
    const SlicedArguments& passes = a.passes;
    const PassArguments& t = passes.pass;
    const WarpSlices own;
    Ahead ahead;
    if (own.first < passes.table.num_slices) ahead.read(passes.table, own.first, own.thread);
    HOPFUSE_ROLLED
    for (int32_t done = 0; t.step.number + done <= a.last; ++done) {
        prepare_lanes(passes, done, shared);
        if (done > 0) grid_barrier(a.barrier);
        else __syncthreads();
        const int4 walks = *reinterpret_cast<const int4*>(t.decision.walking);
        if ((walks.x | walks.y | walks.z | walks.w) == 0) return;
        const bool measures = t.step.number + done >= a.first_measured;
        if (measures) clear_found(shared);
        const SlicedStep step(done, measures, walks);
        sliced_pass<true>(passes, step, own, ahead, shared);
        if (measures) end_sliced_pass(passes, t.step.number + done, shared);
    }
}

}  // namespace hopfuse

using namespace hopfuse;

// ppr_pass_sliced_l4: a pass, as ppr_pass_KIND_l4 in another layout; one launch, long rows too.
//   Unit: a slice of up to 256 entries; a warp. Block: 256.
//   Shared memory: 14400 bytes. Registers: <= 128 (occupancy 25 %).
extern "C" __global__ void __launch_bounds__(256, 2) ppr_pass_sliced_l4(const SlicedArguments a) {
    if (*a.pass.decision.left == 0) return;
    HOPFUSE_DYNAMIC_SHARED(SlicedShared, shared);
    const bool measures = a.pass.step.measured != nullptr;
    prepare_lanes(a, 0, shared);
    if (measures) clear_found(shared);
    __syncthreads();
    const SlicedStep step(0, measures, *reinterpret_cast<const int4*>(a.pass.decision.walking));
    const WarpSlices own;
    Ahead ahead;
    if (own.first < a.table.num_slices) ahead.read(a.table, own.first, own.thread);
    sliced_pass<false>(a, step, own, ahead, shared);
    if (measures) end_sliced_pass(a, a.pass.step.number, shared);
}

// ppr_walk_sliced_l4: passes of a walk to its end, as ppr_walk_l4, in one cooperative launch.
//   Unit: a slice; a warp, of as many blocks as run at once. Block: 256.
//   Shared memory: 14400 bytes. Registers: <= 128 (occupancy 25 %).
extern "C" __global__ void __launch_bounds__(256, 2) ppr_walk_sliced_l4(const SlicedWalkArguments a) {
    HOPFUSE_DYNAMIC_SHARED(SlicedShared, shared);
    sliced_walk(a, shared);
}

HOPFUSE_KERNEL_TYPE(ppr_pass_sliced_l4, SlicedPassKernel);
HOPFUSE_KERNEL_TYPE(ppr_walk_sliced_l4, SlicedWalkKernel);
