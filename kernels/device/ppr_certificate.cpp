#include "ppr_certificate.h"

#include <algorithm>

#include "hopfuse/ppr_certificate.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view UNIT = "ppr_certify_f32";
constexpr auto mass_kernel = lane_kernels<MassKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_mass"));
constexpr auto scale_kernel = lane_kernels<ScaleKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_scale"));
constexpr auto residual_segments_kernel =
    lane_kernels<ResidualKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_residual_segments"));
constexpr auto residual_kernel = lane_kernels<ResidualKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_residual"));
constexpr auto keep_kernel = lane_kernels<KeepKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_keep"));
constexpr auto scores_kernel = lane_kernels<ScoresKernel>(UNIT, HOPFUSE_LANE_NAMES("ppr_scores"));

}  // namespace

bool any(const LaneFlags& lanes) { return std::find(lanes.begin(), lanes.end(), true) != lanes.end(); }

void keep_lanes(Queue& queue, const PprBlock& block, const float* from, float* to, const int32_t* open) {
    block.launch_states(queue, keep_kernel, from, to, open, block.num_nodes());
}

Certifier::Certifier(Queue& queue, PprBlock& of) : block(of) {
    const size_t segments = static_cast<size_t>(std::max<int64_t>(1, block.rows.num_segments));
    std::tie(mass_, lost_, partial_) =
        queue.arrays<double, double, double>(block.width(), block.width(), segments * block.width());
}

void Certifier::normalise(Queue& queue) {
    block.launch_quads(queue, mass_kernel, block.scales(), block.num_nodes(), block.iterate(), block.join.room(),
                       mass_);
    lose(queue, mass_);
}

void Certifier::measure(Queue& queue, float* improved) {
    const GraphRows& graph = block.rows;
    const ResidualArguments a = {
        .scales = block.scales(),
        .num_nodes = graph.num_nodes,
        .indptr = graph.rows.indptr,
        .indices = graph.rows.indices,
        .weight = graph.rows.weight,
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

std::vector<int64_t> Certifier::polish(Queue& queue, Certificate& certificate, LaneFlags& open, int64_t last_pass) {
    std::vector<int64_t> steps(block.width());
    if (!any(open)) return steps;
    Array<float> result = block.even, other = block.odd;
    if (last_pass % 2 != 0) std::swap(result, other);
    block.place(result, other);
    measure(queue, other);
    for (int step = 0; step < PPR_POLISH_STEPS && any(open); ++step) {
        const Array<int32_t> still_open = queue.upload(std::vector<int32_t>(open.begin(), open.end()));
        keep_lanes(queue, block, result, other, still_open);
        std::swap(result, other);
        block.place(result, other);
        lose(queue, nullptr);
        measure(queue, other);
        const auto [residual, bound, per_degree] = queue.read(block.residual, block.bound, block.per_degree);
        for (size_t lane = 0; lane < open.size(); ++lane) {
            if (!open[lane]) continue;
            const bool gained = bound[lane] < PPR_POLISH_GAIN * certificate.bound[lane];
            certificate.residual[lane] = residual[lane];
            certificate.bound[lane] = bound[lane];
            certificate.per_degree[lane] = per_degree[lane];
            ++steps[lane];
            open[lane] = gained && bound[lane] > block.queries.tol;
        }
    }
    return steps;
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
