#include "ppr_passes.h"

#include <algorithm>

#include "hopfuse/ppr_proof.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view PPR_PASSES_UNIT = "ppr_f32";
constexpr auto start_kernel = lane_kernels<StartKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_start"));
constexpr auto early_kernel = lane_kernels<EarlyPassKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_early"));
constexpr auto early_segments_kernel =
    lane_kernels<EarlySegmentsKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_early_segments"));
constexpr auto walk_kernel = lane_kernels<WalkKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_walk"));

constexpr std::string_view SLICED = "ppr_sliced_f32";
constexpr KernelOf<SlicedPassKernel> sliced_pass{{SLICED, "ppr_pass_sliced_l4"}};
constexpr KernelOf<SlicedWalkKernel> sliced_walk{{SLICED, "ppr_walk_sliced_l4"}};

// Of the kinds of edges that a pass is compiled for.
template <class Function>
using KindKernels = std::array<LaneKernels<Function>, 4>;
constexpr KindKernels<PassKernel> pass_kernels = {
    lane_kernels<PassKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_pass_plain")),
    lane_kernels<PassKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_pass_weighted")),
    lane_kernels<PassKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_pass_typed")),
    lane_kernels<PassKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_pass_per_type"))};
constexpr KindKernels<SegmentsKernel> segments_kernels = {
    lane_kernels<SegmentsKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_segments_plain")),
    lane_kernels<SegmentsKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_segments_weighted")),
    lane_kernels<SegmentsKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_segments_typed")),
    lane_kernels<SegmentsKernel>(PPR_PASSES_UNIT, HOPFUSE_LANE_NAMES("ppr_segments_per_type"))};

template <class Function>
const LaneKernels<Function>& of_kind(const KindKernels<Function>& kernels, EdgeKind kind) {
    return kernels[kind < edges_untyped ? kind : kind - 1];
}

constexpr int64_t WAVES = 16;      // the most blocks of a pass for each multiprocessor, which runs four at once
constexpr int LOOK = 4;            // passes between checks of whether any lane is still walking
constexpr int64_t MOST_EARLY = 4;  // the most passes that are run as if most of the state were 0
constexpr double SPARSE = 4.0;     // which is so if it has this many times as many rows as may be nonzero

// How many of the first passes read few rows of the state; each multiplies them by the entries of a row.
int64_t early_passes(const PprBlock& block) {
    const double nodes = static_cast<double>(block.num_nodes()), spread = block.rows.spread;
    double rows = static_cast<double>(block.restarting);
    if (2.0 * rows > nodes) return 0;
    int64_t passes = 2;
    rows *= spread * spread;
    for (; passes < MOST_EARLY && SPARSE * rows <= nodes; ++passes) rows *= spread;
    return passes;
}

// The last pass, and the first one whose residual is needed.
struct Span {
    int64_t last, first_measured;
};

Span span_of(Queue& queue, const PprBlock& block, bool has_proof) {
    if (queue.fixed())
        return {block.last, has_proof ? std::min(block.first_measured, block.first_tried) : block.first_measured};
    const auto [limit, measured_from, next_try] = queue.read(block.limit, block.measured_from, block.next_try);
    const int64_t measured = *std::min_element(measured_from.begin(), measured_from.end());
    const int64_t tried = *std::min_element(next_try.begin(), next_try.end());
    return {*std::max_element(limit.begin(), limit.end()), has_proof ? std::min(measured, tried) : measured};
}

}  // namespace

Passes::Passes(const PprBlock& block, const float* omegas, float* partial)
    : even(block.even), odd(block.odd), omega(omegas), block_(block), kind_(block.edge_kind()) {
    const GraphRows& graph = block.rows;
    const float* factor = block.scale32;
    if (block.queries.per_type) factor = block.attraction ? block.attraction : block.unscale32;
    walk = {.rows = {.indptr = graph.rows.indptr,
                     .entries = graph.rows.entries(),
                     .edge_type = graph.rows.edge_type,
                     .eta = block.eta32,
                     .scale = block.scale32,
                     .num_types = graph.num_types,
                     .per_lane = block.per_lane},
            .num_nodes = graph.num_nodes,
            .partial = partial,
            .long_rows = graph.long_rows(),
            .segments = block.segments(),
            .restart_rows = block.restart_set(),
            .restart = block.restart32,
            .factor = factor,
            .attraction = block.attraction,
            .scale64 = block.per_lane && block.symmetric ? block.scale64.data() : nullptr,
            .damping = block.damping32,
            .accelerates = block.accelerates,
            .degree = block.unscale32,
            .anchor = block.anchor,
            .join = block.join.room(),
            .decision = {.measured_from = block.measured_from,
                         .limit = block.limit,
                         .theta = block.theta,
                         .shrink = block.shrink,
                         .walking = block.walking,
                         .passes = block.passes,
                         .left = block.left,
                         .last_pass = block.last_pass},
            .step = {}};
}

PassArguments Passes::arguments(int64_t number, double* measured, bool ends) const {
    PassArguments own = walk;
    own.step = {.number = number,
                .current = read_by(number),
                .next = written_by(number),
                .before = number == written.number ? written.rows : nullptr,
                .omega = omega == nullptr ? nullptr : omega + (number - 1) * block_.lanes,
                .measured = measured,
                .ends = ends};
    return own;
}

SegmentArguments Passes::segments(int64_t number) const {
    return {.rows = walk.rows,
            .segments = walk.segments,
            .state = read_by(number),
            .num_segments = block_.rows.num_segments,
            .left = walk.decision.left,
            .partial = walk.partial};
}

void Passes::start(Queue& queue, bool all) const {
    block_.launch_items(queue, start_kernel, block_.rows.num_tiles() * 32,
                        StartArguments{.num_nodes = walk.num_nodes,
                                       .restart_rows = walk.restart_rows,
                                       .restart = walk.restart,
                                       .all = all,
                                       .left = walk.decision.left,
                                       .current = even});
}

SlicedArguments Passes::sliced(int64_t number, double* measured, bool ends) const {
    return {.pass = arguments(number, measured, ends),
            .table = block_.rows.slices.table(),
            .state = read_by(number),
            .arrived = block_.join.arrived_of_slice()};
}

void Passes::run(Queue& queue, int64_t number, double* measured, bool ends) const {
    if (block_.is_sliced()) {
        const SlicedArguments own = sliced(number, measured, ends);
        queue.launch(sliced_pass, {sliced_blocks(), SLICED_BLOCK, sizeof(SlicedShared)}, own);
        return;
    }
    if (block_.rows.num_segments > 0) {
        // Masked lanes have segments of their own, so a thread has one lane, not four.
        const int64_t threads = block_.rows.num_segments * (block_.allowed ? block_.lanes : block_.lanes / PASS_LANES);
        block_.launch_items(queue, of_kind(segments_kernels, kind_), threads, segments(number));
    }
    const int64_t waves = WAVES * int64_t{queue.device().properties().multiprocessors};
    const size_t shared = measured == nullptr ? sizeof(LaneFactors) : sizeof(PassShared);
    queue.launch(of_kind(pass_kernels, kind_).of(block_.lanes),
                 {std::min(blocks_of_rows(), waves), PPR_THREADS, shared}, arguments(number, measured, ends));
}

void Passes::run_early(Queue& queue, int64_t number, const uint64_t* before, const uint64_t* nonzero, uint64_t* reached,
                       bool fills) const {
    const NonzeroRows rows = {nonzero, kind_};
    const int64_t together = std::max(EARLY_ROWS, 32 * PASS_LANES / block_.lanes),
                  segments_of_all = block_.rows.num_segments;
    if (segments_of_all > 0) {
        const int64_t warps = block_.allowed ? segments_of_all : blocks(segments_of_all, together);
        block_.launch_items(queue, early_segments_kernel, warps * 32, EarlySegmentArguments{segments(number), rows});
    }
    PassArguments own = arguments(number, nullptr, false);
    own.step.before = before;
    block_.launch_items(queue, early_kernel, blocks(block_.num_nodes(), together) * 32,
                        EarlyPassArguments{own, rows, reached, fills});
}

bool Passes::run_rest(Queue& queue, int64_t number, int64_t first_measured, int64_t last, double* measured) const {
    const int64_t at_once = blocks_at_once(queue);
    if (at_once == 0) return false;
    if (block_.is_sliced()) {
        const SlicedWalkArguments rest = {.passes = sliced(number, measured, true),
                                          .first_measured = first_measured,
                                          .last = last,
                                          .barrier = block_.join.barrier()};
        queue.launch(sliced_walk, {at_once, SLICED_BLOCK, sizeof(SlicedShared), true}, rest);
        return true;
    }
    const WalkArguments rest = {.passes = arguments(number, measured, true),
                                .num_segments = block_.rows.num_segments,
                                .first_measured = first_measured,
                                .last = last,
                                .state = read_by(number),
                                .barrier = block_.join.barrier()};
    queue.launch(walk_kernel.of(block_.lanes), {at_once, PPR_THREADS, sizeof(PassShared), true}, rest);
    return true;
}

// The blocks for the rest of a walk, which wait for each other after each pass; 0: not in one launch. If the states do not fit in
// L2, a pass takes much longer than a launch, and blocks that begin as others end share its work better.
int64_t Passes::blocks_at_once(Queue& queue) const {
    const Device& device = queue.device();
    if (kind_ > edges_weighted || !device.cooperative || !device.properties().has_cooperative) return 0;
    if (2 * sizeof(float) * block_.states() > device.properties().l2_bytes) return 0;
    if (block_.is_sliced())
        return std::min(queue.resident_blocks(sliced_walk, SLICED_BLOCK, sizeof(SlicedShared)), sliced_blocks());
    const int64_t resident = queue.resident_blocks(walk_kernel.of(block_.lanes), PPR_THREADS, sizeof(PassShared));
    return std::min(resident, blocks_of_rows());
}

// The blocks that all rows keep busy, four lanes a thread; at most those that can join what they measure.
int64_t Passes::blocks_of_rows() const {
    const int64_t rows = blocks(block_.num_nodes() * (block_.lanes / PASS_LANES), PPR_THREADS);
    return std::min(rows, blocks(block_.rows.num_tiles(), 1));
}

// A warp for each slice, in no more blocks than measurements can be joined of.
int64_t Passes::sliced_blocks() const {
    const int64_t slices = blocks(block_.rows.slices.table().num_slices, SLICED_BLOCK / SLICE_THREADS);
    return std::min(slices, blocks(block_.rows.num_tiles(), 1));
}

void walk(Queue& queue, const PprBlock& block, Proof* proof, const Array<double>& measured) {
    const Span span = span_of(queue, block, proof != nullptr);
    Array<float> omega;
    if (block.symmetric) {
        const std::span<const double> damping(block.damping.data(), static_cast<size_t>(block.count));
        omega = block.rows.omegas->get(queue, damping, block.lanes, span.last);
    }
    const Array<float> partial = block.segment_sums(queue);
    Passes passes(block, omega ? omega.data() + block.lanes : nullptr, partial);
    const bool is_one_launch = proof == nullptr && passes.blocks_at_once(queue) > 0;
    int64_t early = std::min({span.first_measured - 1, span.last, early_passes(block)});
    if (is_one_launch && block.is_sliced()) early = 0;  // such a pass takes less than a launch
    passes.start(queue, early == 0);
    const size_t words = static_cast<size_t>(std::max<int64_t>(1, block.rows.num_tiles()));
    const Array<uint64_t> reached = queue.empty<uint64_t>(MOST_EARLY * words);
    const uint64_t *before = nullptr, *nonzero = block.restart_words;
    for (int64_t number = 1; number <= early; ++number) {
        uint64_t* const next = reached.data() + static_cast<size_t>(number - 1) * words;
        passes.run_early(queue, number, before, nonzero, next, number == early);
        before = nonzero, nonzero = next;
    }
    passes.written = {early + 1, before};
    if (proof == nullptr && passes.run_rest(queue, early + 1, span.first_measured, span.last, measured)) return;
    const int64_t look = proof == nullptr ? LOOK : PPR_TRY_EVERY;
    for (int64_t number = early + 1; number <= span.last; ++number) {
        if (number < span.first_measured) {
            passes.run(queue, number);
            continue;
        }
        passes.run(queue, number, measured, true);
        if (proof != nullptr) proof->attempt(number);
        if (!queue.fixed() && number % look == 0 && queue.read(block.left)[0] == 0) break;
    }
}

}  // namespace hopfuse::device
