#include "hopfuse/ppr_push.h"

#include "prepared_graph.h"

namespace {

using hopfuse::PprEvidence;
using hopfuse::PprGraph;
using hopfuse::PprPush;
using hopfuse::PprPushEvidence;
using hopfuse::PprQueries;
using hopfuse::PprTopk;
using hopfuse::Status;

void ppr_push(Prepared& prepared, In<int64_t> restart_indptr, In<int32_t> restart_node, In<double> restart_value,
              In<double> damping, std::optional<In<double>> eta, std::optional<In<float>> node_weight,
              std::optional<In<int32_t>> weighted_node, std::optional<In<float>> other_weight, double tol,
              int32_t threads, std::optional<In<uint64_t>> candidate_bits, int64_t num_candidates,
              In<double> largest_degree, In<int64_t> budget, bool gives_up, bool prove_order, Out<int64_t> ids,
              Out<float> scores, Out<int64_t> counts, Out<float> score_bounds, Out<uint8_t> proven,
              Out<int64_t> iterations, Out<double> residual, Out<double> bound, Out<uint8_t> converged,
              Out<int64_t> rounds, Out<int64_t> rows, Out<int64_t> entries) {
    PprQueries q{};
    q.batch = static_cast<int64_t>(damping.shape(0));
    q.restart_indptr = restart_indptr.data(), q.restart_node = restart_node.data();
    q.restart_value = restart_value.data(), q.damping = damping.data();
    q.node_weight = pointer(node_weight), q.weighted_node = pointer(weighted_node);
    q.num_weighted = weighted_node ? static_cast<int64_t>(weighted_node->shape(0)) : 0;
    q.other_weight = pointer(other_weight);
    q.eta = pointer(eta), q.tol = tol, q.execution = {threads};
    PprTopk top{};
    top.k = top.width = static_cast<int64_t>(ids.shape(1));
    top.prove_order = prove_order;
    top.ids = ids.data(), top.scores = scores.data(), top.counts = counts.data();
    top.score_bounds = score_bounds.data(), top.proven = proven.data();
    const PprPush push{{num_candidates, pointer(candidate_bits), largest_degree.data()}, budget.data(), gives_up};
    const PprEvidence evidence{iterations.data(), residual.data(), bound.data(), converged.data()};
    const PprPushEvidence walked{rounds.data(), rows.data(), entries.data()};
    Call(q.execution).run([&](const CpuKernels& kernels) {
        const PprGraph* view = nullptr;
        const Status status = prepared.graph.push_view(q.eta != nullptr, q.execution, view);
        return status == Status::ok ? kernels.ppr_push_f64(*view, q, push, top, evidence, walked) : status;
    });
}

}  // namespace

const Binding ppr_push_binding("ppr_push", [](Module& m) {
    m.def("ppr_push", &ppr_push, nb::arg("graph"), nb::kw_only(), nb::arg("restart_indptr"), nb::arg("restart_node"),
          nb::arg("restart_value"), nb::arg("damping"), nb::arg("eta").none(), nb::arg("node_weight").none(),
          nb::arg("weighted_node").none(), nb::arg("other_weight").none(), nb::arg("tol"), nb::arg("threads"),
          nb::arg("candidate_bits").none(), nb::arg("num_candidates"), nb::arg("largest_degree"), nb::arg("budget"),
          nb::arg("gives_up"), nb::arg("prove_order"), nb::arg("ids"), nb::arg("scores"), nb::arg("counts"),
          nb::arg("score_bounds"), nb::arg("proven"), nb::arg("iterations"), nb::arg("residual"), nb::arg("bound"),
          nb::arg("converged"), nb::arg("rounds"), nb::arg("rows"), nb::arg("entries"));
});
