#include "../kernels/cpu/seeds.h"
#include "../kernels/device/seeds.h"

#include "common.h"
#include "device_hits.h"
#include "device_incidence.h"

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

// ---- On a device ---------------------------------------------------------------------------------------------

// The seeds of a batch that a call takes.
struct SeedOperands {
    Operand<int64_t> node;
    Operand<double> weight;

    native::SeedArrays arrays() const { return {node.dim(0), node.dim(1), node, weight}; }
};

SeedOperands take_seeds(Operands& in, nb::handle node, nb::handle weight) {
    return {in.take<int64_t>(node, 2), in.take<double>(weight, 2)};
}

void add_seeds(Results& out, const native::SeedArrays& seeds) {
    out.add("nodes", seeds.node, {seeds.batch, seeds.width});
    out.add("weights", seeds.weight, {seeds.batch, seeds.width});
}

nb::dict device_add_passage_seeds(const DeviceQueue& queue, nb::handle node, nb::handle weight, nb::handle ids,
                                  nb::handle scores, nb::handle counts, double mass, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const SeedOperands seeds = take_seeds(in, node, weight);
    const HitOperands hits = take_hits(in, ids, scores, counts);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        add_seeds(out, native::add_passage_seeds(to, seeds.arrays(), hits.arrays(), mass));
        out.read();
    });
    return out.dict();
}

nb::dict device_add_entity_seeds(const DeviceQueue& queue, const Incidence& mentions, nb::handle node,
                                 nb::handle weight, nb::handle ids, nb::handle counts, nb::handle frequency,
                                 double mass, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const SeedOperands seeds = take_seeds(in, node, weight);
    const auto hits = in.take<int64_t>(ids, 2);
    const auto used = in.take<int64_t>(counts, 1);
    const auto often = in.take<int64_t>(frequency);
    const int64_t stride = often.rank() == 2 ? often.dim(1) : 0;
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::HitArrays mentioned{hits.dim(0), hits.dim(1), hits, {}, used};
        const native::CheckedSeeds made =
            native::add_entity_seeds(to, mentions.there, seeds.arrays(), mentioned, {often.array(), stride}, mass);
        add_seeds(out, made.seeds);
        out.status(made.status);
        out.read();
    });
    return out.dict();
}

nb::dict device_cover_seeds(const DeviceQueue& queue, const Incidence& mentions, nb::handle node, nb::handle weight,
                            nb::handle ids, nb::handle scores, nb::handle counts, double least, int64_t k,
                            bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const SeedOperands seeds = take_seeds(in, node, weight);
    const HitOperands hits = take_hits(in, ids, scores, counts);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::CheckedHits chosen =
            native::cover_seeds(to, mentions.there, seeds.arrays(), hits.arrays(), least, k);
        add_hits(out, chosen.hits);
        out.status(chosen.status);
        out.read();
    });
    return out.dict();
}

nb::dict device_boost_weights(const DeviceQueue& queue, nb::handle weights, nb::handle ids, nb::handle scores,
                              nb::handle counts, double strength, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const auto given = in.take<float>(weights, 2);
    const HitOperands hits = take_hits(in, ids, scores, counts);
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        in.upload();
        const native::BoostedWeights boosted =
            native::boost_weights(to, given, given.dim(1), hits.arrays(), static_cast<float>(strength));
        out.add("weights", boosted.weights, {given.dim(0), given.dim(1)});
        out.status(boosted.status);
        out.read();
    });
    return out.dict();
}

}  // namespace

const Binding seeds_binding("seeds", [](Module& m) {
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
    m.def("device_add_passage_seeds", &device_add_passage_seeds, nb::arg("queue"), nb::kw_only(), nb::arg("node"),
          nb::arg("weight"), nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::arg("mass"),
          nb::arg("on_device"));
    m.def("device_add_entity_seeds", &device_add_entity_seeds, nb::arg("queue"), nb::arg("mentions"), nb::kw_only(),
          nb::arg("node"), nb::arg("weight"), nb::arg("ids"), nb::arg("counts"), nb::arg("frequency"), nb::arg("mass"),
          nb::arg("on_device"));
    m.def("device_cover_seeds", &device_cover_seeds, nb::arg("queue"), nb::arg("mentions"), nb::kw_only(),
          nb::arg("node"), nb::arg("weight"), nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::arg("least"),
          nb::arg("k"), nb::arg("on_device"));
    m.def("device_boost_weights", &device_boost_weights, nb::arg("queue"), nb::kw_only(), nb::arg("weights"),
          nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::arg("strength"), nb::arg("on_device"));
});
