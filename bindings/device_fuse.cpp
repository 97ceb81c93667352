#include "../kernels/device/fuse.h"

#include "device_hits.h"
#include "fuse_options.h"

namespace {

using hopfuse::CalibrateArgs;
using hopfuse::FuseArgs;
using hopfuse::FuseList;
using hopfuse::FusionMethod;

// The address of an array that the launcher uploads itself if it is on the host, as those of one call all are, or none is.
template <class T>
const T* address(const Operand<T>& given, bool on_device) {
    if (given.on_device() != on_device) throw nb::type_error("lists are partly on the host and partly on a device");
    return on_device ? given.array().data() : given.host().data();
}

nb::dict device_calibrate(const DeviceQueue& queue, nb::handle scores, nb::handle counts, int method, int ties,
                          const nb::dict& option, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    const auto given = in.take<float>(scores, 2);
    const auto used = in.take<int64_t>(counts, 1);
    const bool is_there = given.on_device();
    const CalibrateArgs args{given.dim(0),
                             given.dim(1),
                             address(given, is_there),
                             address(used, is_there),
                             calibration_rule(method, ties, option, 1),
                             nullptr,
                             {1}};
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        out.add("scores", native::calibrate(to, args, is_there), {args.batch, args.width});
        out.read();
    });
    return out.dict();
}

nb::dict device_fuse(const DeviceQueue& queue, const nb::list& lists, In<int64_t> pools, int method, int calibration,
                     int ties, const nb::dict& calibration_option, const nb::dict& option, In<float> weights,
                     double consensus, In<float> prior, int64_t k, bool on_device) {
    DeviceCall call(queue);
    Operands in(call);
    std::vector<FuseList> given;
    given.reserve(lists.size());
    bool is_there = false;
    int64_t batch = 0;
    for (const nb::handle list : lists) {
        const auto ids = in.take<int64_t>(list[0], 2);
        const auto scores = in.take<float>(list[1], 2);
        const auto counts = in.take<int64_t>(list[2], 1);
        if (given.empty()) is_there = ids.on_device(), batch = ids.dim(0);
        given.push_back({ids.dim(1), address(ids, is_there), address(scores, is_there), address(counts, is_there)});
    }
    const int64_t count = static_cast<int64_t>(given.size());
    const FuseArgs args{batch,
                        static_cast<int32_t>(count),
                        given.data(),
                        pools.data(),
                        static_cast<FusionMethod>(method),
                        calibration_rule(calibration, ties, calibration_option, count),
                        fusion_options(option, count),
                        weights.data(),
                        weights.ndim() == 1,
                        {static_cast<float>(consensus), prior.data(), static_cast<int64_t>(prior.shape(0))},
                        k,
                        nullptr,
                        nullptr,
                        nullptr,
                        {1}};
    Results out(call, on_device);
    call.run([&](native::Queue& to) {
        add_hits(out, native::fuse(to, args, is_there));
        out.read();
    });
    return out.dict();
}

}  // namespace

void bind_device_fuse(Module& m) {
    m.def("device_calibrate", &device_calibrate, nb::arg("queue"), nb::arg("scores"), nb::arg("counts"), nb::kw_only(),
          nb::arg("method"), nb::arg("ties"), nb::arg("option"), nb::arg("on_device"));
    m.def("device_fuse", &device_fuse, nb::arg("queue"), nb::arg("lists"), nb::kw_only(), nb::arg("pools"),
          nb::arg("method"), nb::arg("calibration"), nb::arg("ties"), nb::arg("calibration_option"), nb::arg("option"),
          nb::arg("weights"), nb::arg("consensus"), nb::arg("prior"), nb::arg("k"), nb::arg("on_device"));
}
