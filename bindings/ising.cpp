#include "../kernels/device/ising.h"

#include "common.h"
#include "device_graph.h"
#include "device_hits.h"

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

// ---- On a device ---------------------------------------------------------------------------------------------

nb::dict device_ising(const DeviceQueue& queue, const Rows& graph, nb::handle ids, nb::handle scores, nb::handle counts,
                      double coupling, double temperature, double relaxation, int32_t steps, double blend, int64_t k,
                      bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const HitOperands candidates = take_hits(in, ids, scores, counts);
    const hopfuse::IsingModel model{static_cast<float>(coupling), static_cast<float>(temperature),
                                    static_cast<float>(relaxation), steps, static_cast<float>(blend)};
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::CheckedHits best = native::ising(to, graph.there, candidates.arrays(), model, k);
        add_hits(out, best.hits);
        out.status(best.status);
        out.read();
    });
    return out.dict();
}

}  // namespace

const Binding ising_binding("ising", [](Module& m) {
    m.attr("ISING_CANDIDATES") = hopfuse::ISING_CANDIDATES;
    m.def("ising", &ising, nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(), nb::arg("internal_of"),
          nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::kw_only(), nb::arg("coupling"),
          nb::arg("temperature"), nb::arg("relaxation"), nb::arg("steps"), nb::arg("blend"), nb::arg("threads"),
          nb::arg("out_ids"), nb::arg("out_scores"), nb::arg("out_counts"));
    m.def("device_ising", &device_ising, nb::arg("queue"), nb::arg("graph"), nb::kw_only(), nb::arg("ids"),
          nb::arg("scores"), nb::arg("counts"), nb::arg("coupling"), nb::arg("temperature"), nb::arg("relaxation"),
          nb::arg("steps"), nb::arg("blend"), nb::arg("k"), nb::arg("on_device"));
});
