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

}  // namespace

void bind_ppr(Module& m) {
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
}
