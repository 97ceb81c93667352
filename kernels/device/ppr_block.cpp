#include "ppr_block.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "arguments/ppr_volume_f32.h"
#include "hopfuse/ppr_plan.h"
#include "hopfuse/ppr_proof.h"

namespace hopfuse::device {

namespace {

constexpr std::string_view PPR_BLOCK_UNIT = "ppr_restart_f32";
constexpr auto mask_kernel = lane_kernels<MaskKernel>(PPR_BLOCK_UNIT, HOPFUSE_LANE_NAMES("ppr_mask"));
constexpr auto allowed_kernel = lane_kernels<AllowedKernel>(PPR_BLOCK_UNIT, HOPFUSE_LANE_NAMES("ppr_allowed"));
constexpr auto before_kernel = lane_kernels<BeforeKernel>(PPR_BLOCK_UNIT, HOPFUSE_LANE_NAMES("ppr_before"));
constexpr auto degrees_kernel = lane_kernels<DegreesKernel>(PPR_BLOCK_UNIT, HOPFUSE_LANE_NAMES("ppr_degrees"));
constexpr auto restart_kernel = lane_kernels<RestartKernel>(PPR_BLOCK_UNIT, HOPFUSE_LANE_NAMES("ppr_restart"));
constexpr auto volume_kernel = lane_kernels<VolumeKernel>("ppr_volume_f32", HOPFUSE_LANE_NAMES("ppr_volume"));

constexpr double USUAL_NODE_WEIGHT = 1.0 / 1024;

size_t words_of(int64_t num_nodes) { return static_cast<size_t>(std::max<int64_t>(1, (num_nodes + 63) / 64)); }

// Whether rows follow each other.
bool are_consecutive(std::span<const int64_t> rows) {
    return rows.empty() || rows.back() - rows.front() + 1 == static_cast<int64_t>(rows.size());
}

// These rows of a table in host memory; `copy` holds them if they do not follow each other.
template <class T>
std::span<const T> rows_of(std::span<const T> table, size_t width, std::span<const int64_t> rows,
                           std::vector<T>& copy) {
    if (are_consecutive(rows)) return table.subspan(static_cast<size_t>(rows.front()) * width, rows.size() * width);
    for (const int64_t row : rows) {
        const std::span<const T> own = table.subspan(static_cast<size_t>(row) * width, width);
        copy.insert(copy.end(), own.begin(), own.end());
    }
    return copy;
}

template <class T>
Array<T> rows_of(Queue& queue, const Array<T>& table, size_t width, std::span<const int64_t> rows) {
    if (!are_consecutive(rows)) return queue.take_rows(table, width, rows);
    return table.part(static_cast<size_t>(rows.front()) * width, rows.size() * width);
}

int64_t count_distinct(std::span<const int32_t> nodes, int64_t num_nodes) {
    if (nodes.size() < words_of(num_nodes)) {
        std::vector<int32_t> sorted(nodes.begin(), nodes.end());
        std::sort(sorted.begin(), sorted.end());
        return std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    }
    std::vector<uint64_t> words(words_of(num_nodes));
    for (const int32_t node : nodes) words[static_cast<size_t>(node / 64)] |= uint64_t{1} << (node % 64);
    int64_t count = 0;
    for (const uint64_t word : words) count += std::popcount(word);
    return count;
}

}  // namespace

std::vector<int32_t> columns_of(std::span<const int32_t> node, int64_t num_nodes) {
    std::vector<int32_t> column(static_cast<size_t>(num_nodes), -1);
    for (size_t i = 0; i < node.size(); ++i) column[static_cast<size_t>(node[i])] = static_cast<int32_t>(i);
    return column;
}

WalkBatch::WalkBatch(Queue& queue, std::shared_ptr<const DeviceGraph> on, const WalkQueries& of)
    : graph(std::move(on)), queries(of) {
    if (of.shares_allow) shared_allow = std::get<0>(queue.upload(of.allow));
    if (of.node_weights) column = queue.upload(columns_of(of.node_weights->node, rows().num_nodes));
}

// What follows from the restarts: their arrays, and the most rows that restart.
struct PprBlock::Given {
    PprSeeds seeds;
    PprRestarts restarts;
    std::vector<Owner> owners;
};

PprBlock::PprBlock(Queue& queue, const WalkBatch& of, std::span<const int64_t> chosen, int width)
    : batch(of), graph(*of.graph), rows(of.rows()), queries(of.queries), lanes(width),
      count(static_cast<int>(chosen.size())), symmetric(!queries.per_type && !rows.directed),
      per_lane(queries.allow.data() != nullptr || queries.node_weights.has_value() ||
               (queries.eta.data() != nullptr && !queries.per_type)),
      damping(static_cast<size_t>(width)), first_measured(1), first_tried(1), last(0), restarting(0) {
    if (queue.fixed()) fix_passes();
    Given given = upload_lanes(queue, chosen);
    read_nodes(queue, chosen);
    allocate(queue);
    read_degrees(queue);
    measure_volume(queue);
    read_restart(queue, given);
}

PprScales PprBlock::scales() const {
    return {scale64, unscale64, attraction, per_lane, queries.per_type, rows.num_types};
}

PprIterate PprBlock::iterate() const { return {even, odd, is_placed_ ? nullptr : last_pass.data()}; }

EdgeKind PprBlock::edge_kind() const {
    if (queries.per_type) return edges_per_type;
    if (eta32) return edges_typed;
    return rows.rows.stored.weight ? edges_weighted : edges_plain;
}

Array<float> PprBlock::segment_sums(Queue& queue) const {
    return queue.empty<float>(static_cast<size_t>(std::max<int64_t>(1, rows.num_segments)) * width());
}

// The first pass to measure and the last pass, sufficient for all but unusual restarts, which are detected. ||s||_{D^-1} is
// smallest for the stationary restart, 1 / sqrt(vol), and largest for a seed of the smallest degree. If lanes have their own
// degrees, the smallest value is unknown. Node weights usually shrink degrees, relative to the volume, by at most
// USUAL_NODE_WEIGHT.
void PprBlock::fix_passes() {
    const double volume_of_all = std::max(graph.total_degree, graph.least_degree);
    const double smallest = graph.least_degree * (queries.node_weights ? USUAL_NODE_WEIGHT : 1.0);
    const auto limit_of = [&](double degree) {
        const double norm = 1.0 / std::sqrt(degree);
        const int64_t theory = ppr_pass_limit(symmetric, queries.damping[0], queries.tol, volume_of_all, norm);
        return queries.max_iter > 0 ? std::min(theory, queries.max_iter) : theory;
    };
    const int64_t least_passes = limit_of(volume_of_all);
    first_measured = per_lane ? 1 : ppr_measured_from(least_passes);
    first_tried =
        per_lane ? 1 : first_proof(least_passes - 1);  // with one pass less, measuring may begin with the same pass
    last = limit_of(smallest);
}

PprBlock::Given PprBlock::upload_lanes(Queue& queue, std::span<const int64_t> chosen) {
    std::vector<float> damping_rounded(width()), eta_rounded;
    std::vector<double> eta;
    std::vector<int64_t> begin(width()), end(width());  // an unused lane has no restart
    for (size_t lane = 0; lane < chosen.size(); ++lane) {
        damping[lane] = queries.damping[static_cast<size_t>(chosen[lane])];
        damping_rounded[lane] = static_cast<float>(damping[lane]);
    }
    if (queries.eta.data() != nullptr) {
        const size_t types = static_cast<size_t>(rows.num_types);
        eta.assign(types * width(), 1.0);
        for (size_t lane = 0; lane < chosen.size(); ++lane)
            for (size_t type = 0; type < types; ++type)
                eta[type * width() + lane] = queries.eta[static_cast<size_t>(chosen[lane]) * types + type];
        for (const double value : eta) eta_rounded.push_back(static_cast<float>(value));
    }
    std::vector<int32_t> chosen_node;
    std::vector<double> chosen_value;
    std::span<const int32_t> node;
    std::span<const double> value;
    if (queries.seeds) {
        for (size_t lane = 0; lane < width(); ++lane)
            begin[lane] = static_cast<int64_t>(std::min(lane, chosen.size())) * queries.seeds->width;
    } else {
        const auto first_of = [&](size_t lane) { return queries.indptr[static_cast<size_t>(chosen[lane])]; };
        const bool is_part = are_consecutive(chosen);
        int64_t total = 0;
        for (size_t lane = 0; lane < chosen.size(); ++lane) {
            const size_t first = static_cast<size_t>(first_of(lane));
            const size_t size = static_cast<size_t>(queries.indptr[static_cast<size_t>(chosen[lane]) + 1]) - first;
            begin[lane] = total, end[lane] = total += static_cast<int64_t>(size);
            if (is_part) continue;
            const auto own_node = queries.node.subspan(first, size);
            const auto own_value = queries.value.subspan(first, size);
            chosen_node.insert(chosen_node.end(), own_node.begin(), own_node.end());
            chosen_value.insert(chosen_value.end(), own_value.begin(), own_value.end());
        }
        const size_t first = is_part ? static_cast<size_t>(first_of(0)) : 0, size = static_cast<size_t>(total);
        node = is_part ? queries.node.subspan(first, size) : std::span<const int32_t>(chosen_node);
        value = is_part ? queries.value.subspan(first, size) : std::span<const double>(chosen_value);
        restarting = count_distinct(node, rows.num_nodes);
    }
    const auto [d64, d32, e64, e32, begins, ends, nodes, values] =
        queue.upload(std::span<const double>(damping), std::span<const float>(damping_rounded),
                     std::span<const double>(eta), std::span<const float>(eta_rounded), std::span<const int64_t>(begin),
                     std::span<const int64_t>(end), node, value);
    damping64 = d64, damping32 = d32;
    if (!eta.empty()) eta64 = e64, eta32 = e32;
    Given given{};
    given.restarts = {.begin = begins,
                      .end = ends,
                      .node = nodes,
                      .value = values,
                      .words = nullptr,
                      .rank = nullptr,
                      .marked = nullptr};
    given.owners = {begins.owner(), ends.owner(), nodes.owner(), values.owner()};
    given.seeds.width = -1;
    if (queries.seeds) {
        const DeviceSeeds& seeds = *queries.seeds;
        const size_t columns = static_cast<size_t>(seeds.width);
        const Array<int64_t> seed_node = rows_of(queue, seeds.node, columns, chosen);
        const Array<double> seed_weight = rows_of(queue, seeds.weight, columns, chosen);
        const int64_t most = std::max<int64_t>(1, count * seeds.width);
        const auto [sorted_end, sorted_node, sorted_value] = queue.arrays<int64_t, int32_t, double>(lanes, most, most);
        given.seeds = {.node = seed_node,
                       .weight = seed_weight,
                       .width = static_cast<int32_t>(seeds.width),
                       .queries = 0,
                       .may_be_empty = seeds.may_be_empty,
                       .internal_of = nullptr,
                       .num_nodes = 0,
                       .mask = nullptr};
        given.restarts.end = sorted_end, given.restarts.node = sorted_node, given.restarts.value = sorted_value;
        given.owners.insert(given.owners.end(), {seed_node.owner(), seed_weight.owner(), sorted_end.owner()});
        restarting = std::min(most, rows.num_nodes);
    }
    return given;
}

// Makes the mask or node weights of each lane, if any.
void PprBlock::read_nodes(Queue& queue, std::span<const int64_t> chosen) {
    const bool has_allow = queries.allow.data() != nullptr;
    const auto& weights = queries.node_weights;
    if (!has_allow && !weights) return;
    const Array<float> shares = queue.empty<float>(states());
    MaskArguments a{};
    a.shared = queries.shares_allow, a.queries = count, a.num_nodes = rows.num_nodes, a.mask = shares;
    std::vector<uint8_t> allow_copy;
    std::vector<float> weight_copy, other_copy;
    Array<uint8_t> allow = batch.shared_allow;
    Array<float> own, other;
    bool excludes = has_allow;
    if (has_allow && !queries.shares_allow) {
        const size_t nodes = static_cast<size_t>(rows.num_nodes);
        allow = std::get<0>(queue.upload(rows_of(queries.allow, nodes, chosen, allow_copy)));
    }
    a.allowed = has_allow ? allow.data() : nullptr;
    if (weights) {
        const size_t columns = weights->node.size();
        if (weights->on_device) {
            own = rows_of(queue, weights->weight, columns, chosen);
            other = rows_of(queue, weights->other, 1, chosen);
            excludes = true;
        } else {
            const auto host_own = rows_of(weights->host_weight, columns, chosen, weight_copy);
            const auto host_other = rows_of(weights->host_other, 1, chosen, other_copy);
            const auto is_zero = [](float weight) { return weight == 0.0f; };
            excludes = excludes || std::any_of(host_own.begin(), host_own.end(), is_zero) ||
                       std::any_of(host_other.begin(), host_other.end(), is_zero);
            std::tie(own, other) = queue.upload(host_own, host_other);
        }
        attraction = shares;
        least = queue.empty<float>(2 * width());
        a.own = own, a.column = batch.column, a.columns = static_cast<int64_t>(columns), a.other = other;
        a.least = least;
    }
    if (excludes) mask = shares;
    launch_states(queue, mask_kernel, a);
    if (mask && rows.num_segments > 0) read_allowed(queue);
}

// Finds which entries of long rows count in each lane; segments are formed of these entries only.
void PprBlock::read_allowed(Queue& queue) {
    const size_t size = static_cast<size_t>(rows.num_segments) * width();
    allowed = queue.empty<uint64_t>(size);
    before = queue.empty<int32_t>(size);
    launch_segments(queue, allowed_kernel,
                    AllowedArguments{.entries = rows.rows.entries(),
                                     .segment_begin = rows.segment_begin,
                                     .segment_end = rows.segment_end,
                                     .num_segments = rows.num_segments,
                                     .mask = mask,
                                     .allowed = allowed});
    launch_items(queue, before_kernel, rows.num_long * lanes,
                 BeforeArguments{rows.first_of, rows.num_long, allowed, before});
}

void PprBlock::read_degrees(Queue& queue) {
    scale32 = graph.scale32, unscale32 = graph.unscale32;
    scale64 = graph.scale64, unscale64 = graph.unscale64;
    if (!mask) longest_row = rows.longest_row, joined_nodes = rows.joined_nodes;
    if (!per_lane) return;
    const size_t scales = states() * static_cast<size_t>(queries.per_type ? rows.num_types : 1);
    scale32 = queue.empty<float>(scales), unscale32 = queue.empty<float>(states());
    scale64 = queue.empty<double>(scales), unscale64 = queue.empty<double>(states());
    const RowArrays& walked = rows.rows;
    const RowArrays& out = graph.has_out ? graph.out : walked;
    launch_states(queue, degrees_kernel,
                  DegreeArguments{.indptr = out.indptr,
                                  .entries = out.entries(),
                                  .edge_type = out.edge_type,
                                  .degree = rows.degree,
                                  .eta = eta64,
                                  .shares = attraction ? attraction : mask,
                                  .num_types = rows.num_types,
                                  .per_type = queries.per_type,
                                  .in_indptr = graph.has_out ? walked.indptr.data() : nullptr,
                                  .in_entries = walked.entries(),
                                  .num_nodes = rows.num_nodes,
                                  .scale32 = scale32,
                                  .unscale32 = unscale32,
                                  .scale64 = scale64,
                                  .unscale64 = unscale64,
                                  .longest = mask ? longest_row.data() : nullptr,
                                  .joined = mask ? joined_nodes.data() : nullptr,
                                  .least = least});
}

// Each lane's volume; the first launch finds the grain of the sum, the second sums.
void PprBlock::measure_volume(Queue& queue) {
    if (!per_lane) {
        volume = graph.volume;
    } else if (queries.per_type) {  // the volume is not needed
        volume = queue.zeros<double>(width());
    } else {
        const auto [anchor_of_sum, sum] = queue.arrays<double, double>(lanes, lanes);
        launch_tile_lanes(queue, volume_kernel, scales(), nullptr, rows.num_nodes, join.room(), anchor_of_sum);
        launch_tile_lanes(queue, volume_kernel, scales(), anchor_of_sum, rows.num_nodes, join.room(), sum);
        volume = sum;
    }
}

void PprBlock::allocate(Queue& queue) {
    const size_t words = words_of(rows.num_nodes), table_rows = static_cast<size_t>(std::max<int64_t>(1, restarting));
    const size_t lane = width(), state = states(), table = table_rows * lane, of_mask = mask ? lane : 0;
    const size_t slices = is_sliced() ? static_cast<size_t>(rows.slices.table().num_long) : 0;
    std::tie(limit, measured_from, next_try, passes, unproven, last_pass, residual, bound, per_degree, slack, missed,
             theta, shrink, anchor, keeps, accelerates, walking, status, restart_rank, marked_words, even, odd) =
        queue.arrays<int64_t, int64_t, int64_t, int64_t, int32_t, int64_t, double, double, double, double, double,
                     float, float, double, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, float, float>(
            lane, lane, lane, lane, lane, size_t{1}, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane, lane,
            lane, words, table_rows, state, state);
    std::tie(left, longest_row, joined_nodes, join.columns, join.arrived, restart_words, restart64, restart32) =
        queue.zero_arrays<int32_t, uint64_t, uint64_t, double, uint32_t, uint64_t, double, float>(
            size_t{1}, of_mask, of_mask, MEASURED_COLUMNS * JOIN_PLACES * lane, 1 + JOIN_PLACES + slices + 1, words,
            table, table);
}

void PprBlock::read_restart(Queue& queue, Given& given) {
    given.seeds.queries = count, given.seeds.internal_of = rows.internal_of;
    given.seeds.num_nodes = rows.num_nodes, given.seeds.mask = mask;
    given.restarts.words = restart_words, given.restarts.rank = restart_rank, given.restarts.marked = marked_words;
    const RestartArguments a{.scales = scales(),
                             .seeds = given.seeds,
                             .restarts = given.restarts,
                             .damping = damping64,
                             .volume = volume,
                             .symmetric = symmetric,
                             .tol = queries.tol,
                             .max_iter = queries.max_iter,
                             .first = first_measured,
                             .last = last,
                             .restart64 = restart64,
                             .restart32 = restart32,
                             .walk = {.limit = limit,
                                      .measured_from = measured_from,
                                      .next_try = next_try,
                                      .theta = theta,
                                      .shrink = shrink,
                                      .anchor = anchor,
                                      .walking = walking,
                                      .unproven = unproven,
                                      .passes = passes,
                                      .left = left,
                                      .last_pass = last_pass},
                             .longest = longest_row,
                             .joined = joined_nodes,
                             .slack = slack,
                             .missed = missed,
                             .keeps = keeps,
                             .least = least,
                             .accelerates = accelerates,
                             .status = status};
    queue.launch(restart_kernel.of(lanes), {1, 32 * lanes}, a);
}

}  // namespace hopfuse::device
