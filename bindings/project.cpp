#include "common.h"

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

}  // namespace

void bind_project(Module& m) {
    m.def("project", &project, nb::kw_only(), nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(),
          nb::arg("scale").none(), nb::arg("scores"), nb::arg("threads"), nb::arg("status"), nb::arg("out"));
    m.def("project_topk", &project_topk, nb::kw_only(), nb::arg("indptr"), nb::arg("indices"), nb::arg("weight").none(),
          nb::arg("scale").none(), nb::arg("scores"), nb::arg("threads"), nb::arg("status"), nb::arg("out_ids"),
          nb::arg("out_scores"), nb::arg("out_counts"));
}
