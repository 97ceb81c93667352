#include "../kernels/device/similarity.h"

#include "dense_vectors.h"
#include "device_corpus.h"

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

// ---- On a device ---------------------------------------------------------------------------------------------

nb::dict device_similarity_weights(const DeviceQueue& queue, const Corpus& corpus, nb::handle queries, nb::handle mask,
                                   nb::handle indptr, nb::handle ids, bool shared, double tau, double floor,
                                   bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const auto given = take_queries(in, queries, corpus);
    const native::RowFilter allowed = take_filter(in, mask, indptr, ids, shared);
    Results out(call, on_device);
    const int64_t batch = given.dim(0);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::PassageWeights made =
            native::similarity_weights(to, corpus.there, given, batch, allowed, {tau, static_cast<float>(floor)});
        out.add("weights", made.weights, {batch, corpus.there->rows()});
        out.status(made.status);
        out.read();
    });
    return out.dict();
}

}  // namespace

const Binding similarity_binding("similarity", [](Module& m) {
    m.attr("SIMILARITY_LEAST_TAU") = hopfuse::SIMILARITY_LEAST_TAU;
    m.attr("SIMILARITY_LARGEST_TAU") = hopfuse::SIMILARITY_LARGEST_TAU;
    m.attr("SIMILARITY_LEAST_FLOOR") = hopfuse::SIMILARITY_LEAST_FLOOR;
    m.def("similarity", &similarity, nb::arg("vectors"), nb::kw_only(), nb::arg("type"), nb::arg("queries"),
          nb::arg("allow_mask").none(), nb::arg("allow_shared"), nb::arg("tau"), nb::arg("floor"), nb::arg("threads"),
          nb::arg("out"));
    m.def("device_similarity_weights", &device_similarity_weights, nb::arg("queue"), nb::arg("corpus"), nb::kw_only(),
          nb::arg("queries"), nb::arg("mask").none(), nb::arg("indptr").none(), nb::arg("ids").none(),
          nb::arg("shared"), nb::arg("tau"), nb::arg("floor"), nb::arg("on_device"));
});
