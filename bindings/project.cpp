#include "../kernels/device/project.h"

#include "common.h"
#include "device_hits.h"
#include "device_incidence.h"

namespace {

using hopfuse::ProjectArgs;
using hopfuse::ProjectHits;

ProjectArgs read_args(const In<int64_t>& indptr, const In<int32_t>& indices, const std::optional<In<float>>& weight,
                      const std::optional<In<float>>& scale, const In<float>& scores, int32_t threads,
                      const Out<int32_t>& status) {
    return {{static_cast<int64_t>(indptr.shape(0)) - 1, static_cast<int64_t>(scores.shape(1)), indptr.data(),
             indices.data(), pointer(weight), pointer(scale)},
            static_cast<int64_t>(scores.shape(0)),
            scores.data(),
            status.data(),
            {threads}};
}

void run(ProjectArgs args, float* out, const ProjectHits* hits) {
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.project_f32(args, out, hits); });
}

void project(In<int64_t> indptr, In<int32_t> indices, std::optional<In<float>> weight, std::optional<In<float>> scale,
             In<float> scores, int32_t threads, Out<int32_t> status, Out<float> out) {
    run(read_args(indptr, indices, weight, scale, scores, threads, status), out.data(), nullptr);
}

void project_topk(In<int64_t> indptr, In<int32_t> indices, std::optional<In<float>> weight,
                  std::optional<In<float>> scale, In<float> scores, int32_t threads, Out<int32_t> status,
                  Out<int64_t> out_ids, Out<float> out_scores, Out<int64_t> out_counts) {
    const ProjectHits hits{static_cast<int64_t>(out_ids.shape(1)), out_ids.data(), out_scores.data(),
                           out_counts.data()};
    run(read_args(indptr, indices, weight, scale, scores, threads, status), nullptr, &hits);
}

// ---- On a device ---------------------------------------------------------------------------------------------

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

const Binding project_binding("project", [](Module& m) {
    m.def("project", &project, nb::kw_only(), nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(),
          nb::arg("scale").none(), nb::arg("scores"), nb::arg("threads"), nb::arg("status"), nb::arg("out"));
    m.def("project_topk", &project_topk, nb::kw_only(), nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(),
          nb::arg("scale").none(), nb::arg("scores"), nb::arg("threads"), nb::arg("status"), nb::arg("out_ids"),
          nb::arg("out_scores"), nb::arg("out_counts"));
    nb::class_<Incidence>(m, "DeviceIncidence", "An incidence on a device.");
    m.def("device_incidence", &device_incidence, nb::arg("queue"), nb::kw_only(), nb::arg("indptr"), nb::arg("indices"),
          nb::arg("weights").none());
    m.def("device_project", &device_project, nb::arg("queue"), nb::arg("incidence"), nb::kw_only(), nb::arg("scores"),
          nb::arg("scale").none(), nb::arg("on_device"));
    m.def("device_project_topk", &device_project_topk, nb::arg("queue"), nb::arg("incidence"), nb::kw_only(),
          nb::arg("scores"), nb::arg("scale").none(), nb::arg("k"), nb::arg("on_device"));
});
