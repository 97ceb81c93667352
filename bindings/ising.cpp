#include "common.h"

namespace {

using hopfuse::IsingArgs;

void ising(In<int64_t> indptr, In<int32_t> indices, std::optional<In<float>> weight, In<int32_t> internal_of,
           In<int64_t> ids, In<float> scores, In<int64_t> counts, double coupling, double temperature,
           double relaxation, int32_t steps, double blend, int32_t threads, Out<int64_t> out_ids, Out<float> out_scores,
           Out<int64_t> out_counts) {
    IsingArgs args{{static_cast<int64_t>(internal_of.shape(0)), indptr.data(),
                    hopfuse::entries_of(indices.data(), pointer(weight)), internal_of.data()},
                   {static_cast<float>(coupling), static_cast<float>(temperature), static_cast<float>(relaxation),
                    steps, static_cast<float>(blend)},
                   static_cast<int64_t>(ids.shape(0)),
                   static_cast<int64_t>(ids.shape(1)),
                   ids.data(),
                   scores.data(),
                   counts.data(),
                   static_cast<int64_t>(out_ids.shape(1)),
                   out_ids.data(),
                   out_scores.data(),
                   out_counts.data(),
                   {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.ising_f32(args); });
}

}  // namespace

void bind_ising(Module& m) {
    m.attr("ISING_CANDIDATES") = hopfuse::ISING_CANDIDATES;
    m.def("ising", &ising, nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(), nb::arg("internal_of"),
          nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::kw_only(), nb::arg("coupling"),
          nb::arg("temperature"), nb::arg("relaxation"), nb::arg("steps"), nb::arg("blend"), nb::arg("threads"),
          nb::arg("out_ids"), nb::arg("out_scores"), nb::arg("out_counts"));
}
