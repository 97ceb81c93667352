#include <map>
#include <string>

#include <nanobind/stl/map.h>

#include "dense_vectors.h"

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

}  // namespace

void bind_dense(Module& m) {
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
}
