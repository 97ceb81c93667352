#include <nanobind/stl/tuple.h>

#include "../kernels/device/node_weights.h"
#include "../kernels/device/ppr.h"

#include "device.h"
#include "device_graph.h"
#include "hopfuse/ppr.h"
#include "prepared_graph.h"

namespace {

using hopfuse::PprCourse;
using hopfuse::PprEvidence;
using hopfuse::PprGraph;
using hopfuse::PprQueries;
using hopfuse::PprTopk;
using hopfuse::Status;

PprQueries make_queries(In<int64_t> restart_indptr, In<int32_t> restart_node, In<double> restart_value,
                        In<double> damping, std::optional<In<double>> eta, bool per_type,
                        std::optional<In<uint8_t>> allow, std::optional<In<float>> node_weight,
                        std::optional<In<int32_t>> weighted_node, std::optional<In<float>> other_weight, double tol,
                        int64_t max_iter, int32_t threads) {
    PprQueries q{};
    q.batch = static_cast<int64_t>(damping.shape(0));
    q.restart_indptr = restart_indptr.data(), q.restart_node = restart_node.data();
    q.restart_value = restart_value.data(), q.damping = damping.data();
    q.eta = pointer(eta), q.per_type = per_type;
    q.allow = pointer(allow), q.allow_shared = allow.has_value() && allow->shape(0) == 1;
    q.node_weight = pointer(node_weight), q.weighted_node = pointer(weighted_node);
    q.other_weight = pointer(other_weight);
    q.num_weighted = weighted_node.has_value() ? static_cast<int64_t>(weighted_node->shape(0)) : 0;
    q.tol = tol, q.max_iter = max_iter, q.execution = {threads};
    return q;
}

// Walks; returns the most threads used, and the most queries that walked together.
std::pair<int32_t, int> walk(Prepared& prepared, PprQueries& q, bool regroups, float* scores, const PprTopk* top,
                             const PprEvidence& evidence) {
    PprCourse course;
    Call(q.execution).run([&](const CpuKernels& kernels) {
        const PprGraph* graph = nullptr;
        const Status status = prepared.graph.view(q, regroups, graph, course);
        return status == Status::ok ? kernels.ppr_f32(*graph, q, scores, top, evidence) : status;
    });
    return {course.threads, course.lanes};
}

std::pair<int32_t, int> ppr(Prepared& graph, In<int64_t> restart_indptr, In<int32_t> restart_node,
                            In<double> restart_value, In<double> damping, std::optional<In<double>> eta, bool per_type,
                            std::optional<In<uint8_t>> allow, std::optional<In<float>> node_weight,
                            std::optional<In<int32_t>> weighted_node, std::optional<In<float>> other_weight, double tol,
                            int64_t max_iter, int32_t threads, Out<float> scores, Out<int64_t> iterations,
                            Out<double> residual, Out<double> bound, Out<uint8_t> converged) {
    PprQueries q = make_queries(restart_indptr, restart_node, restart_value, damping, eta, per_type, allow, node_weight,
                                weighted_node, other_weight, tol, max_iter, threads);
    const PprEvidence evidence{iterations.data(), residual.data(), bound.data(), converged.data()};
    return walk(graph, q, false, scores.data(), nullptr, evidence);
}

std::pair<int32_t, int> ppr_topk(Prepared& graph, In<int64_t> restart_indptr, In<int32_t> restart_node,
                                 In<double> restart_value, In<double> damping, std::optional<In<double>> eta,
                                 bool per_type, std::optional<In<uint8_t>> allow, std::optional<In<float>> node_weight,
                                 std::optional<In<int32_t>> weighted_node, std::optional<In<float>> other_weight,
                                 double tol, int64_t max_iter, int32_t threads, std::optional<In<int32_t>> candidates,
                                 bool stop_when_proven, bool prove_order, Out<int64_t> ids, Out<float> scores,
                                 Out<int64_t> counts, Out<float> score_bounds, Out<uint8_t> proven,
                                 Out<int64_t> iterations, Out<double> residual, Out<double> bound,
                                 Out<uint8_t> converged) {
    PprQueries q = make_queries(restart_indptr, restart_node, restart_value, damping, eta, per_type, allow, node_weight,
                                weighted_node, other_weight, tol, max_iter, threads);
    const PprEvidence evidence{iterations.data(), residual.data(), bound.data(), converged.data()};
    PprTopk top{};
    top.width = static_cast<int64_t>(ids.shape(1));
    top.candidates = pointer(candidates),
    top.num_candidates = candidates.has_value() ? static_cast<int64_t>(candidates->shape(0)) : 0;
    const int64_t most = candidates.has_value() ? top.num_candidates : graph.graph.arrays().num_nodes;
    top.k = top.width < most ? top.width : most;
    top.stop_when_proven = stop_when_proven, top.prove_order = prove_order;
    top.ids = ids.data(), top.scores = scores.data(), top.counts = counts.data();
    top.score_bounds = score_bounds.data(), top.proven = proven.data();
    return walk(graph, q, stop_when_proven, nullptr, &top, evidence);
}

// ---- On a device ---------------------------------------------------------------------------------------------

template <class T>
std::span<const T> span_of(const T* data, int64_t size) {
    return {data, data == nullptr ? 0 : static_cast<size_t>(size)};
}

template <class T>
std::span<const T> span_of(const hopfuse::Array<T>& array, int64_t size) {
    return span_of<T>(array.data(), size);
}

// An array of the host, or no address for None.
template <class T>
std::span<const T> maybe_host(Operands& in, nb::handle given, int rank) {
    return given.is_none() ? std::span<const T>() : in.host<T>(given, rank);
}

// Whether masks are one for all queries, (1, N), not (B, N).
bool shares(std::span<const uint8_t> allow, const native::DeviceGraph& graph) {
    return allow.data() != nullptr && static_cast<int64_t>(allow.size()) == graph.rows->num_nodes;
}

Rows device_rows(const DeviceQueue& queue, Prepared& prepared) {
    hopfuse::EntryCounts counts{};
    make_tables(1, [&](const hopfuse::Execution& execution) { return prepared.graph.counts(execution, counts); });
    const hopfuse::GraphArrays& g = prepared.graph.arrays();
    const native::HostGraph graph{.num_nodes = g.num_nodes,
                                  .num_stored = g.num_stored,
                                  .num_types = g.num_types,
                                  .directed = g.directed,
                                  .rows = {span_of(g.indptr, g.num_nodes + 1), span_of(g.indices, g.num_stored),
                                           span_of(g.weight, g.num_stored), span_of(g.edge_type, g.num_stored)},
                                  .degree = span_of(g.degree, g.num_nodes * g.num_types),
                                  .node_of = span_of(g.node_of, g.num_nodes),
                                  .internal_of = span_of(g.row_of, g.num_nodes),
                                  .longest_row = counts.longest_row,
                                  .joined_nodes = counts.joined_nodes};
    Rows made;
    DeviceCall call(queue);
    call.run([&](native::Queue& to) { made.there = native::upload_rows(to, graph); });
    return made;
}

WalkedGraph device_graph(const DeviceQueue& queue, const Rows& rows, Prepared& prepared, bool per_type, bool with_out) {
    const hopfuse::GraphArrays& g = prepared.graph.arrays();
    const hopfuse::DegreeTables* tables = nullptr;
    const hopfuse::StoredRows* out = nullptr;
    make_tables(1, [&](const hopfuse::Execution& execution) {
        const hopfuse::Status status = prepared.graph.degrees(per_type, execution, tables);
        if (status != hopfuse::Status::ok || !with_out) return status;
        return prepared.graph.outgoing(execution, out);
    });
    const int64_t scales = g.num_nodes * (per_type ? g.num_types : 1);
    const native::HostDegrees degrees{span_of(tables->scale64, scales), span_of(tables->scale32, scales),
                                      span_of(tables->unscale64, g.num_nodes), span_of(tables->unscale32, g.num_nodes),
                                      tables->volume};
    native::HostRows out_rows;
    if (out != nullptr)
        out_rows = {span_of(out->indptr, g.num_nodes + 1), span_of(out->indices, g.num_stored),
                    span_of(out->weight, g.num_stored), span_of(out->edge_type, g.num_stored)};
    WalkedGraph made;
    DeviceCall call(queue);
    call.run([&](native::Queue& to) {
        made.there = native::upload_graph(to, rows.there, degrees, out == nullptr ? nullptr : &out_rows);
    });
    return made;
}

// The operands of a batch, a PprQueries of hopfuse/backends/walk_queries.py.
class QueryOperands {
public:
    QueryOperands(Operands& in, nb::handle given, const native::DeviceGraph& graph) {
        queries_.damping = in.host<double>(given.attr("damping"), 1);
        queries_.indptr = in.host<int64_t>(given.attr("indptr"), 1);
        queries_.node = in.host<int32_t>(given.attr("node"), 1);
        queries_.value = in.host<double>(given.attr("value"), 1);
        queries_.eta = maybe_host<double>(in, given.attr("edge_type_weights"), 2);
        queries_.per_type = nb::cast<bool>(given.attr("per_type"));
        queries_.allow = maybe_host<uint8_t>(in, given.attr("allow"), 2);
        queries_.shares_allow = shares(queries_.allow, graph);
        queries_.tol = nb::cast<double>(given.attr("tol"));
        queries_.max_iter = nb::cast<int64_t>(given.attr("max_iter"));
        if (const nb::object seeds = given.attr("seeds"); !seeds.is_none()) take_seeds(in, seeds);
        if (const nb::object weights = given.attr("node_weights"); !weights.is_none()) take_weights(in, weights);
    }

    // In the body of DeviceCall::run, after Operands::upload().
    const native::WalkQueries& queries() {
        if (seed_node_) queries_.seeds->node = *seed_node_, queries_.seeds->weight = *seed_weight_;
        if (node_weight_) queries_.node_weights->weight = *node_weight_, queries_.node_weights->other = *other_weight_;
        return queries_;
    }

private:
    void take_seeds(Operands& in, nb::handle seeds) {
        seed_node_.emplace(in.take<int64_t>(seeds.attr("node"), 2));
        seed_weight_.emplace(in.take<double>(seeds.attr("weight"), 2));
        queries_.seeds = {{}, {}, seed_node_->dim(1), nb::cast<bool>(seeds.attr("may_be_empty"))};
    }
    void take_weights(Operands& in, nb::handle given) {
        native::NodeWeightArrays& weights = queries_.node_weights.emplace();
        weights.node = in.host<int32_t>(given.attr("node"), 1);
        weights.on_device = nb::cast<bool>(given.attr("on_device"));
        if (weights.on_device) {
            node_weight_.emplace(in.take<float>(given.attr("weight"), 2));
            other_weight_.emplace(in.take<float>(given.attr("other"), 1));
        } else {
            weights.host_weight = in.host<float>(given.attr("weight"), 2);
            weights.host_other = in.host<float>(given.attr("other"), 1);
        }
    }

    native::WalkQueries queries_;
    std::optional<Operand<int64_t>> seed_node_;
    std::optional<Operand<double>> seed_weight_;
    std::optional<Operand<float>> node_weight_, other_weight_;
};

void add_evidence(Results& out, const native::WalkAnswers& answers, int64_t batch) {
    out.add("iterations", answers.iterations, {batch});
    out.add("residual", answers.residual, {batch});
    out.add("bound", answers.bound, {batch});
    out.add("converged", answers.converged, {batch});
}

nb::dict device_ppr(const DeviceQueue& queue, const WalkedGraph& graph, nb::handle queries, nb::handle scores,
                    bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    QueryOperands batch(in, queries, *graph.there);
    const Target<float> target = in.target<float>(scores, 2);
    native::ScoreTarget to_scores = target.there ? native::ScoreTarget(target.there) : native::ScoreTarget(target.host);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::WalkQueries& given = batch.queries();
        const native::WalkAnswers answers = native::ppr(to, graph.there, given, to_scores);
        add_evidence(out, answers, given.batch());
        if (on_device) out.status(answers.status);
        out.read();
        to_scores.end();
    });
    return out.dict();
}

nb::dict device_ppr_topk(const DeviceQueue& queue, const WalkedGraph& graph, nb::handle queries, int64_t k,
                         nb::handle candidates, bool stop_when_proven, bool prove_order, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    QueryOperands batch(in, queries, *graph.there);
    const native::NodeSelection selection{k, maybe_host<int32_t>(in, candidates, 1), stop_when_proven, prove_order};
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::WalkQueries& given = batch.queries();
        const native::WalkAnswers answers = native::ppr_topk(to, graph.there, given, selection);
        const int64_t size = given.batch();
        out.add("ids", answers.ids, {size, k});
        out.add("scores", answers.scores, {size, k});
        out.add("counts", answers.counts, {size});
        out.add("score_bounds", answers.score_bounds, {size, k});
        out.add("proven", answers.proven, {size});
        add_evidence(out, answers, size);
        if (on_device) out.status(answers.status);
        out.read();
    });
    return out.dict();
}

nb::dict device_order_weights(const DeviceQueue& queue, const WalkedGraph& graph, nb::handle weight, nb::handle node,
                              nb::handle allow, nb::handle lightest) {
    DeviceCall call(queue);
    Operands in(call);
    const auto given = in.take<float>(weight, 2);
    native::GivenWeights weights{};
    weights.batch = given.dim(0);
    weights.node = in.host<int32_t>(node, 1);
    weights.allow = maybe_host<uint8_t>(in, allow, 2);
    weights.shares_allow = shares(weights.allow, *graph.there);
    weights.lightest = maybe_host<double>(in, lightest, 1);
    Results out(call, true);
    call.run([&](native::Queue& to) {
        in.upload();
        weights.weight = given;
        const native::OrderedWeights made = native::order_weights(to, graph.there, weights);
        out.add("weight", made.weight, {given.dim(0), given.dim(1)});
        out.add("other", made.other, {given.dim(0)});
        out.status(made.status);
        out.read();
    });
    return out.dict();
}

std::vector<std::tuple<int64_t, int64_t, int>> device_lane_blocks(int64_t batch, int most) {
    std::vector<std::tuple<int64_t, int64_t, int>> made;
    for (const native::LaneBlock& block : native::lane_blocks(batch, most))
        made.emplace_back(block.first, block.count, block.lanes);
    return made;
}

}  // namespace

const Binding ppr_binding("ppr", [](Module& m) {
    m.attr("PPR_LEAST_WEIGHT") = hopfuse::PPR_LEAST_WEIGHT;
    m.def("ppr", &ppr, nb::arg("graph"), nb::kw_only(), nb::arg("restart_indptr"), nb::arg("restart_node"),
          nb::arg("restart_value"), nb::arg("damping"), nb::arg("eta").none(), nb::arg("per_type"),
          nb::arg("allow").none(), nb::arg("node_weight").none(), nb::arg("weighted_node").none(),
          nb::arg("other_weight").none(), nb::arg("tol"), nb::arg("max_iter"), nb::arg("threads"), nb::arg("scores"),
          nb::arg("iterations"), nb::arg("residual"), nb::arg("bound"), nb::arg("converged"));
    m.def("ppr_topk", &ppr_topk, nb::arg("graph"), nb::kw_only(), nb::arg("restart_indptr"), nb::arg("restart_node"),
          nb::arg("restart_value"), nb::arg("damping"), nb::arg("eta").none(), nb::arg("per_type"),
          nb::arg("allow").none(), nb::arg("node_weight").none(), nb::arg("weighted_node").none(),
          nb::arg("other_weight").none(), nb::arg("tol"), nb::arg("max_iter"), nb::arg("threads"),
          nb::arg("candidates").none(), nb::arg("stop_when_proven"), nb::arg("prove_order"), nb::arg("ids"),
          nb::arg("scores"), nb::arg("counts"), nb::arg("score_bounds"), nb::arg("proven"), nb::arg("iterations"),
          nb::arg("residual"), nb::arg("bound"), nb::arg("converged"));
    nb::class_<Rows>(m, "DeviceRows", "The rows of a graph on a device.");
    nb::class_<WalkedGraph>(m, "DeviceGraph", "A graph on a device, with one normalisation of edge types.");
    m.def("device_rows", &device_rows, nb::arg("queue"), nb::arg("prepared"), "Copy the rows of a graph to a device.");
    m.def("device_graph", &device_graph, nb::arg("queue"), nb::arg("rows"), nb::arg("prepared"), nb::arg("per_type"),
          nb::arg("with_out"), "Copy degrees to a device and, for degrees that a query sums, rows of outgoing edges.");
    m.def("device_ppr", &device_ppr, nb::arg("queue"), nb::arg("graph"), nb::arg("queries"), nb::kw_only(),
          nb::arg("scores"), nb::arg("on_device"));
    m.def("device_ppr_topk", &device_ppr_topk, nb::arg("queue"), nb::arg("graph"), nb::arg("queries"), nb::kw_only(),
          nb::arg("k"), nb::arg("candidates").none(), nb::arg("stop_when_proven"), nb::arg("prove_order"),
          nb::arg("on_device"));
    m.def("device_order_weights", &device_order_weights, nb::arg("queue"), nb::arg("graph"), nb::kw_only(),
          nb::arg("weight"), nb::arg("node"), nb::arg("allow").none(), nb::arg("lightest").none());
    m.def(
        "device_code_count",
        [](int64_t num_nodes) { return native::code_count(num_nodes, native::Sizes().most_codes); },
        nb::arg("num_nodes"), "The most distinct weights of a graph whose entries a device packs in words.");
    m.def("device_most_lanes", &native::most_lanes, nb::arg("num_nodes"), nb::arg("num_stored"), nb::arg("l2_bytes"),
          nb::arg("l2_speedup"), "The lanes of blocks that take the least time per query, by bytes.");
    m.def("device_lane_blocks", &device_lane_blocks, nb::arg("batch"), nb::arg("most") = native::LANES.back(),
          "The first query, the number of queries and the lanes of each block of a batch.");
});
