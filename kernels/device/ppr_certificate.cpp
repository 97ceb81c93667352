#include "ppr_certificate.h"

#include <algorithm>

#include "hopfuse/ppr_certificate.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view PPR_CERTIFICATE_UNIT = "ppr_certify_f32";
constexpr auto mass_kernel = lane_kernels<MassKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_mass"));
constexpr auto scale_kernel = lane_kernels<ScaleKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_scale"));
constexpr auto residual_segments_kernel =
    lane_kernels<ResidualKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_residual_segments"));
constexpr auto residual_kernel = lane_kernels<ResidualKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_residual"));
constexpr auto keep_kernel = lane_kernels<KeepKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_keep"));
constexpr KernelOf<PolishKernel> polish_kernel{{"ppr_settle_f32", "ppr_polish"}};
constexpr auto scores_kernel = lane_kernels<ScoresKernel>(PPR_CERTIFICATE_UNIT, HOPFUSE_LANE_NAMES("ppr_scores"));

}  // namespace

void keep_lanes(Queue& queue, const PprBlock& block, const float* from, float* to, const PprKept& kept) {
    block.launch_tile_lanes(queue, keep_kernel, from, to, kept, block.num_nodes());
}

Certifier::Certifier(Queue& queue, PprBlock& of, const Array<int64_t>& of_answers) : block(of), rows(of_answers) {
    const size_t lane = block.width(), segments = static_cast<size_t>(std::max<int64_t>(1, block.rows.num_segments));
    std::tie(mass_, lost_, partial_, counts, stays_, before_, steps_, changed_, passes_) =
        queue.arrays<double, double, double, SettlingCounts, int32_t, double, int64_t, int64_t, int64_t>(
            lane, lane, segments * lane, size_t{1}, lane, lane, lane, lane, lane);
}

void Certifier::normalise(Queue& queue) {
    block.launch_quads(queue, mass_kernel, block.scales(), block.num_nodes(), block.iterate(), block.join.room(),
                       mass_);
    lose(queue, mass_);
    block.place();
}

void Certifier::measure(Queue& queue, float* improved, const int32_t* lanes) {
    const GraphRows& graph = block.rows;
    const ResidualArguments a = {
        .scales = block.scales(),
        .num_nodes = graph.num_nodes,
        .indptr = graph.rows.indptr,
        .entries = graph.rows.entries(),
        .edge_type = graph.rows.edge_type,
        .eta = block.eta64,
        .iterate = block.iterate(),
        .long_rows = graph.long_rows(),
        .segments = block.segments(),
        .num_segments = graph.num_segments,
        .partial = partial_,
        .restart_rows = block.restart_set(),
        .restart = block.restart64,
        .lost = lost_,
        .certified = {.damping = block.damping64, .slack = block.slack, .missed = block.missed, .keeps = block.keeps},
        .symmetric = block.symmetric,
        .left = lanes,
        .improved = improved,
        .correction = correction,
        .join = block.join.room(),
        .residual = block.residual,
        .bound = block.bound,
        .per_degree = block.per_degree};
    const int64_t width = block.mask ? block.lanes : block.lanes / LANES_OF_QUAD;
    if (a.num_segments > 0) block.launch_items(queue, residual_segments_kernel, a.num_segments * width, a);
    block.launch_quads(queue, residual_kernel, a);
}

void Certifier::plan_polish(Queue& queue) { decide(queue, true); }

void Certifier::polish(Queue& queue) {
    const int32_t* const left = &counts.data()->polishing;
    measure(queue, block.odd, left);
    for (int step = 0, turns = 1; step < PPR_POLISH_STEPS; turns *= 2) {
        for (const int last = std::min(step + turns, PPR_POLISH_STEPS); step < last; ++step) {
            keep_lanes(queue, block, block.odd, block.even, {stays_, nullptr, 0});
            lose(queue, nullptr);
            measure(queue, block.odd, left);
            decide(queue, false);
        }
        if (queue.read(counts)[0].polishing == 0) break;
    }
}

void Certifier::decide(Queue& queue, bool begins) {
    queue.launch(polish_kernel, {1, 32}, PolishArguments{lanes(), polished(), begins});
}

CertifiedLanes Certifier::lanes() const {
    return {.rows = rows,
            .damping = block.damping64,
            .limit = block.limit,
            .passes = block.passes,
            .walking = block.walking,
            .unproven = block.unproven,
            .residual = block.residual,
            .bound = block.bound,
            .per_degree = block.per_degree,
            .slack = block.slack,
            .missed = block.missed,
            .volume = block.volume,
            .longest_row = block.longest_row,
            .volume_stride = block.volume.size() > 1,
            .longest_stride = block.longest_row.size() > 1,
            .least = block.least,
            .tol = block.queries.tol,
            .max_iter = block.queries.max_iter,
            .lanes = block.lanes};
}

PolishLanes Certifier::polished() const {
    return {.stays = stays_, .bound = before_, .steps = steps_, .rows = changed_, .passes = passes_, .counts = counts};
}

void Certifier::scores(Queue& queue, float* out) const {
    const int64_t shares = blocks(block.num_nodes(), SCORES_OF_BLOCK / block.lanes);
    queue.launch(scores_kernel.of(block.lanes), {shares, PPR_THREADS}, block.iterate(), block.rows.internal_of,
                 block.num_nodes(), block.count, out);
}

void Certifier::lose(Queue& queue, const double* total) {
    block.launch_quads(queue, scale_kernel, block.scales(), block.eta64, total, block.unproven, block.keeps,
                       block.num_nodes(), block.iterate(), block.join.room(), lost_);
}

}  // namespace hopfuse::device
