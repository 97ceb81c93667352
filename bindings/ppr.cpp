#include "common.h"
#include "hopfuse/ppr_certificate.h"
#include "hopfuse/ppr_plan.h"

namespace {

using hopfuse::PprEvidence;
using hopfuse::PprGraph;
using hopfuse::PprQueries;
using hopfuse::PprSlices;
using hopfuse::PprTiles;
using hopfuse::PprTopk;

// Keeps the arrays of a graph alive beside the view that the kernels read.
struct GraphView {
    PprGraph view;
    nb::object owner;
};

struct SlicesView {
    PprSlices view;
    nb::object owner;
};

SlicesView make_slices(nb::object owner, int64_t long_rows, In<int64_t> indptr, In<int32_t> segment,
                       In<int32_t> row_segments, std::optional<In<uint16_t>> narrow, std::optional<In<int32_t>> wide,
                       std::optional<In<float>> weight, std::optional<In<uint8_t>> edge_type,
                       std::optional<In<float>> share32) {
    PprSlices s{};
    s.num_units = static_cast<int64_t>(indptr.shape(0)) - 1;
    s.segment_units = static_cast<int64_t>(segment.shape(0));
    s.long_rows = long_rows;
    s.indptr = indptr.data(), s.segment = segment.data(), s.row_segments = row_segments.data();
    s.narrow = pointer(narrow), s.wide = pointer(wide);
    s.weight = pointer(weight), s.edge_type = pointer(edge_type), s.share32 = pointer(share32);
    return {s, std::move(owner)};
}

struct TilesView {
    PprTiles view;
    nb::object owner;
};

TilesView make_tiles(nb::object owner, int64_t strip, int64_t most_units, In<int64_t> block_row, In<int64_t> begin,
                     In<uint16_t> unit, In<uint16_t> source, std::optional<In<float>> weight,
                     std::optional<In<uint8_t>> edge_type, std::optional<In<float>> share32) {
    PprTiles t{};
    t.num_blocks = static_cast<int64_t>(block_row.shape(0)) - 1;
    t.num_strips = (static_cast<int64_t>(begin.shape(0)) - 1) / (t.num_blocks > 0 ? t.num_blocks : 1);
    t.strip = strip, t.most_units = most_units;
    t.block_row = block_row.data(), t.begin = begin.data();
    t.unit = unit.data(), t.source = source.data();
    t.weight = pointer(weight), t.edge_type = pointer(edge_type), t.share32 = pointer(share32);
    return {t, std::move(owner)};
}

GraphView make_graph(nb::object owner, bool directed, int32_t num_types, In<int64_t> indptr, In<int32_t> indices,
                     std::optional<In<float>> weight, std::optional<In<uint8_t>> edge_type,
                     std::optional<In<float>> share32, In<double> degree, In<int32_t> node_of, In<int32_t> row_of,
                     std::optional<In<int32_t>> place, std::optional<In<int32_t>> internal, const GraphView* by_length,
                     const SlicesView* slices, const TilesView* tiles, In<double> scale64, In<float> scale32,
                     std::optional<In<double>> unscale64, std::optional<In<float>> unscale32, double volume,
                     int64_t longest_row, int64_t joined_nodes, std::optional<In<int64_t>> out_indptr,
                     std::optional<In<int32_t>> out_indices, std::optional<In<float>> out_weight,
                     std::optional<In<uint8_t>> out_edge_type) {
    PprGraph g{};
    g.num_nodes = static_cast<int64_t>(node_of.shape(0));
    g.num_stored = static_cast<int64_t>(indices.shape(0));
    g.num_types = num_types;
    g.directed = directed;
    g.indptr = indptr.data(), g.indices = indices.data();
    g.weight = pointer(weight), g.edge_type = pointer(edge_type), g.share32 = pointer(share32);
    g.degree = degree.data(), g.node_of = node_of.data(), g.row_of = row_of.data();
    g.place = pointer(place), g.internal = pointer(internal);
    g.by_length = by_length == nullptr ? nullptr : &by_length->view;
    g.slices = slices == nullptr ? nullptr : &slices->view;
    g.tiles = tiles == nullptr ? nullptr : &tiles->view;
    g.scale64 = scale64.data(), g.scale32 = scale32.data();
    g.unscale64 = pointer(unscale64), g.unscale32 = pointer(unscale32);
    g.volume = volume, g.longest_row = longest_row, g.joined_nodes = joined_nodes;
    g.out_indptr = pointer(out_indptr), g.out_indices = pointer(out_indices);
    g.out_weight = pointer(out_weight), g.out_edge_type = pointer(out_edge_type);
    return {g, std::move(owner)};
}

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

void ppr(const GraphView& graph, In<int64_t> restart_indptr, In<int32_t> restart_node, In<double> restart_value,
         In<double> damping, std::optional<In<double>> eta, bool per_type, std::optional<In<uint8_t>> allow,
         std::optional<In<float>> node_weight, std::optional<In<int32_t>> weighted_node,
         std::optional<In<float>> other_weight, double tol, int64_t max_iter, int32_t threads, Out<float> scores,
         Out<int64_t> iterations, Out<double> residual, Out<double> bound, Out<uint8_t> converged) {
    PprQueries q = make_queries(restart_indptr, restart_node, restart_value, damping, eta, per_type, allow, node_weight,
                                weighted_node, other_weight, tol, max_iter, threads);
    const PprEvidence evidence{iterations.data(), residual.data(), bound.data(), converged.data()};
    Call(q.execution).run([&](const CpuKernels& kernels) {
        return kernels.ppr_f32(graph.view, q, scores.data(), nullptr, evidence);
    });
}

void ppr_topk(const GraphView& graph, In<int64_t> restart_indptr, In<int32_t> restart_node, In<double> restart_value,
              In<double> damping, std::optional<In<double>> eta, bool per_type, std::optional<In<uint8_t>> allow,
              std::optional<In<float>> node_weight, std::optional<In<int32_t>> weighted_node,
              std::optional<In<float>> other_weight, double tol, int64_t max_iter, int32_t threads,
              std::optional<In<int32_t>> candidates, bool stop_when_proven, bool prove_order, Out<int64_t> ids,
              Out<float> scores, Out<int64_t> counts, Out<float> score_bounds, Out<uint8_t> proven,
              Out<int64_t> iterations, Out<double> residual, Out<double> bound, Out<uint8_t> converged) {
    PprQueries q = make_queries(restart_indptr, restart_node, restart_value, damping, eta, per_type, allow, node_weight,
                                weighted_node, other_weight, tol, max_iter, threads);
    const PprEvidence evidence{iterations.data(), residual.data(), bound.data(), converged.data()};
    PprTopk top{};
    top.width = static_cast<int64_t>(ids.shape(1));
    top.candidates = pointer(candidates),
    top.num_candidates = candidates.has_value() ? static_cast<int64_t>(candidates->shape(0)) : 0;
    const int64_t most = candidates.has_value() ? top.num_candidates : graph.view.num_nodes;
    top.k = top.width < most ? top.width : most;
    top.stop_when_proven = stop_when_proven, top.prove_order = prove_order;
    top.ids = ids.data(), top.scores = scores.data(), top.counts = counts.data();
    top.score_bounds = score_bounds.data(), top.proven = proven.data();
    Call(q.execution).run([&](const CpuKernels& kernels) {
        return kernels.ppr_f32(graph.view, q, nullptr, &top, evidence);
    });
}

}  // namespace

void bind_ppr(Module& m) {
    m.attr("PPR_SEGMENT") = hopfuse::PPR_SEGMENT;
    m.attr("PPR_TILE") = hopfuse::PPR_TILE;
    m.attr("PPR_SLICE") = hopfuse::PPR_SLICE;
    m.attr("PPR_FEW_LANES") = hopfuse::PPR_FEW_LANES;
    m.attr("PPR_TILE_LANES") = hopfuse::PPR_TILE_LANES;
    m.attr("PPR_CACHED_NODES") = hopfuse::PPR_CACHED_NODES;
    m.attr("PPR_LEAST_WEIGHT") = hopfuse::PPR_LEAST_WEIGHT;
    m.attr("PPR_ANCHOR") = hopfuse::PPR_ANCHOR;
    m.attr("PPR_MOST_RHO") = hopfuse::PPR_MOST_RHO;
    m.attr("PPR_NEAR") = hopfuse::PPR_NEAR;
    m.attr("PPR_POLISH_STEPS") = hopfuse::PPR_POLISH_STEPS;
    m.attr("PPR_POLISH_GAIN") = hopfuse::PPR_POLISH_GAIN;
    m.def("ppr_pass_limit", &hopfuse::ppr_pass_limit, nb::arg("symmetric"), nb::arg("damping"), nb::arg("tol"),
          nb::arg("volume"), nb::arg("norm"));
    m.def("ppr_volume_anchor", &hopfuse::ppr_volume_anchor, nb::arg("largest"), nb::arg("terms"));
    m.def("ppr_measured_from", &hopfuse::ppr_measured_from, nb::arg("limit"));
    m.def("ppr_threads", &hopfuse::ppr_threads, nb::arg("nodes"), nb::arg("stored"), nb::arg("lanes"), nb::arg("most"));
    m.def("ppr_are_shared", &hopfuse::ppr_are_shared, nb::arg("queries"), nb::arg("threads"));
    m.def("ppr_blocks_at_once", &hopfuse::ppr_blocks_at_once, nb::arg("nodes"), nb::arg("stored"), nb::arg("queries"),
          nb::arg("most"));
    m.def("ppr_next_look", &hopfuse::ppr_next_look, nb::arg("damping"), nb::arg("done"), nb::arg("shortfall"),
          nb::arg("order"));
    m.def("ppr_may_look_around", &hopfuse::ppr_may_look_around, nb::arg("shortfall"));
    m.def("ppr_may_correct", &hopfuse::ppr_may_correct, nb::arg("longest_row"));
    m.def("ppr_is_faint", &hopfuse::ppr_is_faint, nb::arg("factor"), nb::arg("damping"));
    m.def(
        "ppr_rest_of_rho",
        [](float restart, double per_degree, double slack, int64_t longest_row, double largest_scale,
           double largest_inverse, double damping) {
            const hopfuse::PassLoss loss = hopfuse::ppr_pass_loss(longest_row, largest_scale, largest_inverse);
            return hopfuse::ppr_rest_of_rho(restart, per_degree, slack, loss, damping);
        },
        nb::arg("restart"), nb::arg("per_degree"), nb::arg("slack"), nb::arg("longest_row"), nb::arg("largest_scale"),
        nb::arg("largest_inverse"), nb::arg("damping"));
    m.def(
        "ppr_local_bound",
        [](double largest, double rest, int64_t longest_row, double largest_scale, double largest_inverse,
           double damping) {
            const hopfuse::PassLoss loss = hopfuse::ppr_pass_loss(longest_row, largest_scale, largest_inverse);
            return hopfuse::ppr_local_bound(largest, rest, loss, damping);
        },
        nb::arg("largest"), nb::arg("rest"), nb::arg("longest_row"), nb::arg("largest_scale"),
        nb::arg("largest_inverse"), nb::arg("damping"));
    m.def(
        "ppr_corrected_rest",
        [](double largest, double per_degree, double rest, int64_t longest_row, double largest_scale,
           double largest_inverse) {
            const hopfuse::PassLoss loss = hopfuse::ppr_pass_loss(longest_row, largest_scale, largest_inverse);
            return hopfuse::ppr_corrected_rest(largest, per_degree, rest, loss);
        },
        nb::arg("largest"), nb::arg("per_degree"), nb::arg("rest"), nb::arg("longest_row"), nb::arg("largest_scale"),
        nb::arg("largest_inverse"));
    m.def(
        "ppr_corrected_residual",
        [](double measured, double residual, double moved, double volume, int64_t longest_row, double largest_scale,
           double largest_inverse) {
            const hopfuse::PassLoss loss = hopfuse::ppr_pass_loss(longest_row, largest_scale, largest_inverse);
            return hopfuse::ppr_corrected_residual(measured, residual, moved, volume, loss);
        },
        nb::arg("measured"), nb::arg("residual"), nb::arg("moved"), nb::arg("volume"), nb::arg("longest_row"),
        nb::arg("largest_scale"), nb::arg("largest_inverse"));
    m.def("ppr_bound", &hopfuse::ppr_bound, nb::arg("residual"), nb::arg("slack"), nb::arg("missed"),
          nb::arg("damping"));
    m.def("ppr_node_bound", &hopfuse::ppr_node_bound, nb::arg("holds"), nb::arg("largest"), nb::arg("slack"),
          nb::arg("damping"));
    m.def("ppr_rounding", &hopfuse::ppr_rounding, nb::arg("lacking"), nb::arg("missed"));
    nb::class_<SlicesView>(m, "SlicesView", "A graph's entries in slices, as the kernels read them.")
        .def_static("make", &make_slices, nb::kw_only(), nb::arg("owner"), nb::arg("long_rows"), nb::arg("indptr"),
                    nb::arg("segment"), nb::arg("row_segments"), nb::arg("narrow").none(), nb::arg("wide").none(),
                    nb::arg("weight").none(), nb::arg("edge_type").none(), nb::arg("share32").none());
    nb::class_<TilesView>(m, "TilesView", "A graph's entries in tiles, as the kernels read them.")
        .def_static("make", &make_tiles, nb::kw_only(), nb::arg("owner"), nb::arg("strip"), nb::arg("most_units"),
                    nb::arg("block_row"), nb::arg("begin"), nb::arg("unit"), nb::arg("source"),
                    nb::arg("weight").none(), nb::arg("edge_type").none(), nb::arg("share32").none());
    nb::class_<GraphView>(m, "GraphView", "A graph's arrays as the kernels read them.")
        .def_static("make", &make_graph, nb::kw_only(), nb::arg("owner"), nb::arg("directed"), nb::arg("num_types"),
                    nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(), nb::arg("edge_type").none(),
                    nb::arg("share32").none(), nb::arg("degree"), nb::arg("node_of"), nb::arg("row_of"),
                    nb::arg("place").none(), nb::arg("internal").none(), nb::arg("by_length").none(),
                    nb::arg("slices").none(), nb::arg("tiles").none(), nb::arg("scale64"), nb::arg("scale32"),
                    nb::arg("unscale64").none(), nb::arg("unscale32").none(), nb::arg("volume"), nb::arg("longest_row"),
                    nb::arg("joined_nodes"), nb::arg("out_indptr").none(), nb::arg("out_indices").none(),
                    nb::arg("out_weight").none(), nb::arg("out_edge_type").none());
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
}
