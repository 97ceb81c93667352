#include "../kernels/device/ising.h"

#include "device_graph.h"
#include "device_hits.h"

namespace {

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

void bind_device_ising(Module& m) {
    m.def("device_ising", &device_ising, nb::arg("queue"), nb::arg("graph"), nb::kw_only(), nb::arg("ids"),
          nb::arg("scores"), nb::arg("counts"), nb::arg("coupling"), nb::arg("temperature"), nb::arg("relaxation"),
          nb::arg("steps"), nb::arg("blend"), nb::arg("k"), nb::arg("on_device"));
}
