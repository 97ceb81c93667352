#include "dense_vectors.h"

namespace {

void similarity(Vectors vectors, int type, In<float> queries, std::optional<In<uint8_t>> allow_mask, bool allow_shared,
                double tau, double floor, int32_t threads, Out<float> out) {
    hopfuse::SimilarityArgs args{view_of(vectors, type, true),
                                 static_cast<int64_t>(queries.shape(0)),
                                 queries.data(),
                                 pointer(allow_mask),
                                 allow_shared,
                                 tau,
                                 static_cast<float>(floor),
                                 {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.similarity_f32(args, out.data()); });
}

}  // namespace

void bind_similarity(Module& m) {
    m.attr("SIMILARITY_LEAST_TAU") = hopfuse::SIMILARITY_LEAST_TAU;
    m.attr("SIMILARITY_LARGEST_TAU") = hopfuse::SIMILARITY_LARGEST_TAU;
    m.attr("SIMILARITY_LEAST_FLOOR") = hopfuse::SIMILARITY_LEAST_FLOOR;
    m.def("similarity", &similarity, nb::arg("vectors"), nb::kw_only(), nb::arg("type"), nb::arg("queries"),
          nb::arg("allow_mask").none(), nb::arg("allow_shared"), nb::arg("tau"), nb::arg("floor"), nb::arg("threads"),
          nb::arg("out"));
}
