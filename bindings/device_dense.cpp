#include "../kernels/device/dense_topk.h"

#include "../kernels/device/similarity.h"
#include "dense_vectors.h"
#include "device_corpus.h"
#include "device_hits.h"

namespace {

Corpus device_corpus(const DeviceQueue& queue, Vectors vectors, int type, bool cosine) {
    const hopfuse::DenseVectors given = view_of(vectors, type, cosine);
    DeviceCall call(queue);
    Corpus made;
    call.run([&](native::Queue& to) { made.there = std::make_shared<native::DeviceCorpus>(to, given); });
    return made;
}

// The vectors of queries, (B, dim) of the corpus.
Operand<float> take_queries(Operands& in, nb::handle queries, const Corpus& corpus) {
    const auto given = in.take<float>(queries, 2);
    if (given.dim(1) != corpus.there->dim()) throw nb::type_error("queries have as many dimensions as the corpus");
    return given;
}

nb::dict device_dense_topk(const DeviceQueue& queue, const Corpus& corpus, nb::handle queries, int64_t k,
                           nb::handle mask, nb::handle indptr, nb::handle ids, bool shared, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const auto given = take_queries(in, queries, corpus);
    const native::RowFilter allowed = take_filter(in, mask, indptr, ids, shared);
    Results out(call, on_device);
    const int64_t batch = given.dim(0);
    int64_t rescored = 0;
    call.run([&](native::Queue& to) {
        in.upload();
        const native::DenseFound found =
            native::dense_topk(to, corpus.there, given, batch, k, allowed, !out.on_device());
        rescored = found.rescored;
        if (found.status.empty()) out.status(found.hits.status);
        else out.status_read(found.status);
        if (found.read == nullptr) {
            add_hits(out, found.hits.hits);
        } else {
            out.add_read<int64_t>("ids", found.read, found.begins[0], {batch, k});
            out.add_read<float>("scores", found.read, found.begins[1], {batch, k});
            out.add_read<int64_t>("counts", found.read, found.begins[2], {batch});
        }
        out.read();
    });
    nb::dict made = out.dict();
    made["rescored_rows"] = rescored;
    return made;
}

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

void bind_device_dense(Module& m) {
    nb::class_<Corpus>(m, "DeviceCorpus", "A corpus on a device.");
    m.attr("DEVICE_MOST_ROWS") = native::MOST_ROWS;
    m.attr("DENSE_STEP_ERROR") = hopfuse::DENSE_STEP_ERROR;
    m.def("device_corpus", &device_corpus, nb::arg("queue"), nb::arg("vectors"), nb::kw_only(), nb::arg("type"),
          nb::arg("cosine"));
    m.def("device_dense_topk", &device_dense_topk, nb::arg("queue"), nb::arg("corpus"), nb::kw_only(),
          nb::arg("queries"), nb::arg("k"), nb::arg("mask").none(), nb::arg("indptr").none(), nb::arg("ids").none(),
          nb::arg("shared"), nb::arg("on_device"));
    m.def(
        "device_dot_bound",
        [](int32_t dim, int type) {
            const hopfuse::DotBound bound = native::dot_bound(dim, static_cast<hopfuse::DenseType>(type));
            return nb::make_tuple(bound.slack, bound.norm_floor, bound.underflow);
        },
        nb::arg("dim"), nb::arg("type"),
        "The slack, the norm's floor and the underflow of products of vectors with this dimension and type.");
    m.def("device_similarity_weights", &device_similarity_weights, nb::arg("queue"), nb::arg("corpus"), nb::kw_only(),
          nb::arg("queries"), nb::arg("mask").none(), nb::arg("indptr").none(), nb::arg("ids").none(),
          nb::arg("shared"), nb::arg("tau"), nb::arg("floor"), nb::arg("on_device"));
}
