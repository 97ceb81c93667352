#include "../kernels/cpu/seeds.h"

#include "common.h"

namespace {

using hopfuse::GivenHits;
using hopfuse::GivenMentions;
using hopfuse::GivenSeeds;

// Up to so many hits and seeds take less time than to let another thread of Python run in between.
constexpr size_t FEW = 1 << 12;

GivenSeeds read_seeds(const In<int64_t>& node, const In<double>& weight) {
    return {static_cast<int64_t>(node.shape(0)), static_cast<int64_t>(node.shape(1)), node.data(), weight.data()};
}

GivenHits read_hits(const In<int64_t>& ids, const float* scores, const In<int64_t>& counts) {
    return {static_cast<int64_t>(ids.shape(1)), ids.data(), scores, counts.data()};
}

template <class Body>
void run(size_t entries, const Body& body) {
    hopfuse::Execution execution{1};
    Call(execution, entries <= FEW).run([&](const CpuKernels&) { return body(); });
}

void add_passage_seeds(In<int64_t> node, In<double> weight, In<int64_t> ids, In<float> scores, In<int64_t> counts,
                       double mass, Out<int64_t> out_node, Out<double> out_weight) {
    run(out_node.size(), [&] {
        hopfuse::add_passage_seeds(read_seeds(node, weight), read_hits(ids, scores.data(), counts), mass,
                                   {out_node.data(), out_weight.data()});
        return hopfuse::Status::ok;
    });
}

int64_t most_entries(In<int64_t> ids, In<int64_t> counts, In<int64_t> indptr) {
    int64_t most = 0;
    run(ids.size(), [&] {
        most =
            hopfuse::most_entries(read_hits(ids, nullptr, counts), static_cast<int64_t>(ids.shape(0)), indptr.data());
        return hopfuse::Status::ok;
    });
    return most;
}

void add_entity_seeds(In<int64_t> node, In<double> weight, In<int64_t> ids, In<int64_t> counts, In<int64_t> indptr,
                      In<int32_t> indices, std::optional<In<float>> weights, In<int64_t> frequency, double mass,
                      Out<int64_t> out_node, Out<double> out_weight) {
    const int64_t columns = static_cast<int64_t>(frequency.shape(1));
    const GivenMentions mentions{indptr.data(), indices.data(), pointer(weights)};
    const int64_t places = static_cast<int64_t>(out_node.shape(1)) - static_cast<int64_t>(node.shape(1));
    run(out_node.size(), [&] {
        return hopfuse::add_entity_seeds(read_seeds(node, weight), read_hits(ids, nullptr, counts), mentions,
                                         frequency.data(), frequency.shape(0) == 1 ? 0 : columns, mass, places,
                                         {out_node.data(), out_weight.data()});
    });
}

void cover_seeds(In<int64_t> node, In<double> weight, In<int64_t> ids, In<float> scores, In<int64_t> counts,
                 In<int64_t> indptr, In<int32_t> indices, std::optional<In<float>> weights, double least,
                 Out<int64_t> out_ids, Out<float> out_scores, Out<int64_t> out_counts) {
    const GivenMentions mentions{indptr.data(), indices.data(), pointer(weights)};
    run(ids.size() + node.size(), [&] {
        return hopfuse::cover_seeds(read_seeds(node, weight), read_hits(ids, scores.data(), counts), mentions, least,
                                    static_cast<int64_t>(out_ids.shape(1)),
                                    {out_ids.data(), out_scores.data(), out_counts.data()});
    });
}

void boost_weights(Out<float> weights, In<int64_t> ids, In<float> scores, In<int64_t> counts, double strength) {
    run(ids.size(), [&] {
        hopfuse::boost_weights(weights.data(), static_cast<int64_t>(weights.shape(0)),
                               static_cast<int64_t>(weights.shape(1)), read_hits(ids, scores.data(), counts),
                               static_cast<float>(strength));
        return hopfuse::Status::ok;
    });
}

}  // namespace

void bind_seeds(Module& m) {
    m.def("add_passage_seeds", &add_passage_seeds, nb::kw_only(), nb::arg("node"), nb::arg("weight"), nb::arg("ids"),
          nb::arg("scores"), nb::arg("counts"), nb::arg("mass"), nb::arg("out_node"), nb::arg("out_weight"),
          "Add hits to seeds, at a mass in proportion to their scores.");
    m.def("most_entries", &most_entries, nb::arg("ids"), nb::arg("counts"), nb::arg("indptr"),
          "The most entries that the hits of a query have in compressed rows.");
    m.def("add_entity_seeds", &add_entity_seeds, nb::kw_only(), nb::arg("node"), nb::arg("weight"), nb::arg("ids"),
          nb::arg("counts"), nb::arg("indptr"), nb::arg("indices"), nb::arg("weights").none(), nb::arg("frequency"),
          nb::arg("mass"), nb::arg("out_node"), nb::arg("out_weight"), "Add the nodes of hits to seeds.");
    m.def("cover_seeds", &cover_seeds, nb::kw_only(), nb::arg("node"), nb::arg("weight"), nb::arg("ids"),
          nb::arg("scores"), nb::arg("counts"), nb::arg("indptr"), nb::arg("indices"), nb::arg("weights").none(),
          nb::arg("least"), nb::arg("out_ids"), nb::arg("out_scores"), nb::arg("out_counts"),
          "Choose the hits that cover the seeds.");
    m.def("boost_weights", &boost_weights, nb::kw_only(), nb::arg("weights"), nb::arg("ids"), nb::arg("scores"),
          nb::arg("counts"), nb::arg("strength"), "Boost the weights of hits, in place.");
}
