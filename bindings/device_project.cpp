#include "../kernels/device/project.h"

#include "device_hits.h"
#include "device_incidence.h"

namespace {

Incidence device_incidence(const DeviceQueue& queue, nb::handle indptr, nb::handle indices, nb::handle weights) {
    DeviceCall call(queue);
    Operands in(call);
    const auto rows = in.host<int64_t>(indptr, 1);
    const auto columns = in.host<int32_t>(indices, 1);
    const auto weight = weights.is_none() ? std::span<const float>() : in.host<float>(weights, 1);
    Incidence made;
    call.run([&](native::Queue& to) { made.there = native::device_incidence(to, rows, columns, weight); });
    return made;
}

// Scores (B, columns) and the scale of the rows, which the operands keep.
struct Given {
    Operand<float> scores;
    const float* scale;

    native::Projection of(const Incidence& incidence) const {
        return {incidence.there, scores, scores.dim(0), scores.dim(1), scale};
    }
};

Given take(Operands& in, const Incidence& incidence, nb::handle scores, nb::handle scale) {
    const auto given = in.take<float>(scores, 2);
    if (scale.is_none()) return {given, nullptr};
    const auto factors = in.host<float>(scale, 1);
    if (static_cast<int64_t>(factors.size()) != incidence.there->rows)
        throw nb::type_error("a scale has a number for each row");
    return {given, factors.data()};
}

nb::dict device_project(const DeviceQueue& queue, const Incidence& incidence, nb::handle scores, nb::handle scale,
                        bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const Given given = take(in, incidence, scores, scale);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::Projected made = native::project(to, given.of(incidence));
        out.add("scores", made.scores, {given.scores.dim(0), incidence.there->rows});
        out.status(made.status);
        out.read();
    });
    return out.dict();
}

nb::dict device_project_topk(const DeviceQueue& queue, const Incidence& incidence, nb::handle scores, nb::handle scale,
                             int64_t k, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const Given given = take(in, incidence, scores, scale);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::TopkHits made = native::project_topk(to, given.of(incidence), k);
        add_hits(out, made.hits);
        out.status(made.status);
        out.read();
    });
    return out.dict();
}

}  // namespace

void bind_device_project(Module& m) {
    nb::class_<Incidence>(m, "DeviceIncidence", "An incidence on a device.");
    m.def("device_incidence", &device_incidence, nb::arg("queue"), nb::kw_only(), nb::arg("indptr"), nb::arg("indices"),
          nb::arg("weights").none());
    m.def("device_project", &device_project, nb::arg("queue"), nb::arg("incidence"), nb::kw_only(), nb::arg("scores"),
          nb::arg("scale").none(), nb::arg("on_device"));
    m.def("device_project_topk", &device_project_topk, nb::arg("queue"), nb::arg("incidence"), nb::kw_only(),
          nb::arg("scores"), nb::arg("scale").none(), nb::arg("k"), nb::arg("on_device"));
}
