#include "../kernels/device/dice.h"

#include "device.h"

namespace {

using hopfuse::DiceArgs;

void dice(In<int64_t> label_indptr, In<int32_t> label_units, int32_t units, In<int64_t> query_indptr,
          In<int32_t> query_units, In<int64_t> indptr, In<int32_t> candidates, int32_t threads, Out<float> scores) {
    DiceArgs args{{label_indptr.data(), label_units.data()}, units,         {query_indptr.data(), query_units.data()},
                  static_cast<int64_t>(indptr.shape(0)) - 1, indptr.data(), candidates.data(),
                  static_cast<int32_t>(candidates.shape(1)), scores.data(), {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.dice_f32(args); });
}

// ---- On a device ---------------------------------------------------------------------------------------------

// Labels on a device, which Python keeps with the ones on the host.
struct Labels {
    std::shared_ptr<const native::DeviceLabels> there;
};

Labels device_labels(const DeviceQueue& queue, nb::handle indptr, nb::handle members) {
    DeviceCall call(queue);
    Operands in(call);
    const std::span<const int64_t> ends = in.host<int64_t>(indptr, 1);
    const std::span<const int32_t> elements = in.host<int32_t>(members, 1);
    Labels labels;
    call.run([&](native::Queue& to) { labels.there = native::upload_labels(to, ends, elements); });
    return labels;
}

nb::object device_dice(const DeviceQueue& queue, const Labels& labels, In<int64_t> query_indptr,
                       In<int32_t> query_units, In<int64_t> indptr, In<int32_t> candidates) {
    DeviceCall call(queue);
    const hopfuse::DiceArgs args{{nullptr, nullptr},
                                 0,
                                 {query_indptr.data(), query_units.data()},
                                 static_cast<int64_t>(indptr.shape(0)) - 1,
                                 indptr.data(),
                                 candidates.data(),
                                 static_cast<int32_t>(candidates.shape(1)),
                                 nullptr,
                                 {1}};
    Results out(call, false);
    call.run([&](native::Queue& to) {
        const native::Array<float> scores = native::dice(to, labels.there, args);
        out.add("scores", scores, {static_cast<int64_t>(scores.size())});
        out.read();
    });
    return out.dict()["scores"];
}

}  // namespace

const Binding dice_binding("dice", [](Module& m) {
    m.def("dice", &dice, nb::kw_only(), nb::arg("label_indptr"), nb::arg("label_units"), nb::arg("units"),
          nb::arg("query_indptr"), nb::arg("query_units"), nb::arg("indptr"), nb::arg("candidates"), nb::arg("threads"),
          nb::arg("scores"));
    nb::class_<Labels>(m, "DeviceLabels", "Label sets on a device.");
    m.def("device_labels", &device_labels, nb::arg("queue"), nb::arg("indptr"), nb::arg("members"),
          "Copy label sets to a device.");
    m.def("device_dice", &device_dice, nb::arg("queue"), nb::arg("labels"), nb::kw_only(), nb::arg("query_indptr"),
          nb::arg("query_units"), nb::arg("indptr"), nb::arg("candidates"),
          nb::sig("def device_dice(queue: DeviceQueue, labels: DeviceLabels, *, query_indptr: object, "
                  "query_units: object, indptr: object, candidates: object) -> "
                  "numpy.typing.NDArray[numpy.float32]"));
});
