#include <map>
#include <string>

#include <nanobind/stl/map.h>

#include "../kernels/device/dense_topk.h"

#include "dense_vectors.h"
#include "device_corpus.h"
#include "device_hits.h"

namespace {

using hopfuse::DenseCodes;
using hopfuse::DenseCorpus;
using hopfuse::DenseHits;
using hopfuse::DenseQueries;
using hopfuse::DenseType;
using hopfuse::DenseVectors;

// The number of each precision of originals.
std::map<std::string, int> dense_types() {
    return {{"float32", int(DenseType::float32)},
            {"float16", int(DenseType::float16)},
            {"bfloat16", int(DenseType::bfloat16)}};
}

DenseCodes codes_of(const Out<uint8_t>& codes, const Out<float>& scale, const Out<float>& error,
                    const Out<float>& norm_code, const Out<float>& norm) {
    return {codes.data(), scale.data(), error.data(), norm_code.data(), norm.data()};
}

void encode(Vectors vectors, int type, bool cosine, int32_t threads, Out<uint8_t> codes, Out<float> scale,
            Out<float> error, Out<float> norm_code, Out<float> norm) {
    const DenseVectors view = view_of(vectors, type, cosine);
    const DenseCodes out = codes_of(codes, scale, error, norm_code, norm);
    hopfuse::Execution execution{threads};
    Call(execution).run([&](const CpuKernels& kernels) { return kernels.dense_encode(view, out, execution); });
}

bool topk(Vectors vectors, int type, bool cosine, std::optional<Out<uint8_t>> codes, std::optional<Out<float>> scale,
          std::optional<Out<float>> error, std::optional<Out<float>> norm_code, std::optional<Out<float>> norm,
          In<float> queries, int64_t k, std::optional<In<uint8_t>> allow_mask, std::optional<In<int64_t>> allow_indptr,
          std::optional<In<int64_t>> allow_ids, bool allow_shared, int32_t threads, Out<int64_t> ids, Out<float> scores,
          Out<int64_t> counts, Out<int64_t> rescored) {
    const bool is_coded = codes && scale && error && norm_code && norm;
    const DenseCorpus corpus{view_of(vectors, type, cosine),
                             is_coded ? codes_of(*codes, *scale, *error, *norm_code, *norm) : DenseCodes{}};
    DenseQueries q{static_cast<int64_t>(queries.shape(0)),
                   queries.data(),
                   k,
                   pointer(allow_mask),
                   pointer(allow_indptr),
                   pointer(allow_ids),
                   allow_shared,
                   {threads}};
    bool is_sound = true;
    const DenseHits hits{ids.data(), scores.data(), counts.data(), rescored.data(), &is_sound};
    Call(q.execution).run([&](const CpuKernels& kernels) { return kernels.dense_topk(corpus, q, hits); });
    return is_sound;
}

// ---- On a device ---------------------------------------------------------------------------------------------

Corpus device_corpus(const DeviceQueue& queue, Vectors vectors, int type, bool cosine) {
    const hopfuse::DenseVectors given = view_of(vectors, type, cosine);
    DeviceCall call(queue);
    Corpus made;
    call.run([&](native::Queue& to) { made.there = std::make_shared<native::DeviceCorpus>(to, given); });
    return made;
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

}  // namespace

const Binding dense_binding("dense", [](Module& m) {
    m.attr("DENSE_TILE") = hopfuse::DENSE_TILE;
    m.attr("DENSE_GROUP") = hopfuse::DENSE_GROUP;
    m.attr("DENSE_STEP") = hopfuse::DENSE_STEP;
    m.def("dense_types", &dense_types, "The number of each precision of originals.");
    m.def("dense_encode", &encode, nb::arg("vectors"), nb::kw_only(), nb::arg("type"), nb::arg("cosine"),
          nb::arg("threads"), nb::arg("codes"), nb::arg("scale"), nb::arg("error"), nb::arg("norm_code"),
          nb::arg("norm"));
    m.def("dense_topk", &topk, nb::arg("vectors"), nb::kw_only(), nb::arg("type"), nb::arg("cosine"),
          nb::arg("codes").none(), nb::arg("scale").none(), nb::arg("error").none(), nb::arg("norm_code").none(),
          nb::arg("norm").none(), nb::arg("queries"), nb::arg("k"), nb::arg("allow_mask").none(),
          nb::arg("allow_indptr").none(), nb::arg("allow_ids").none(), nb::arg("allow_shared"), nb::arg("threads"),
          nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::arg("rescored"));
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
});
