#include "../kernels/device/seeds.h"

#include "../kernels/device/boost.h"
#include "device_hits.h"
#include "device_incidence.h"

namespace {

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

void bind_device_seeds(Module& m) {
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
}
