#include <map>
#include <string>

#include <nanobind/stl/map.h>

#include "../kernels/device/fuse.h"

#include "common.h"
#include "device_hits.h"

namespace {

using hopfuse::CalibrateArgs;
using hopfuse::Calibration;
using hopfuse::CalibrationRule;
using hopfuse::FuseArgs;
using hopfuse::FuseList;
using hopfuse::FusionMethod;
using hopfuse::FusionOptions;
using hopfuse::Ties;

// Sets the field of that name, if it is this one.
struct Field {
    const std::string& name;
    nb::handle value;

    bool set(const char* field, float& number) const {
        if (name != field) return false;
        number = nb::cast<float>(value);
        return true;
    }
    bool set(const char* field, const float*& array, int64_t size) const {
        if (name != field) return false;
        const auto given = nb::cast<In<float>>(value, false);
        if (given.size() != static_cast<size_t>(size))
            throw nb::value_error(
                ("option " + name + " has " + std::to_string(given.size()) + " numbers, not " + std::to_string(size))
                    .c_str());
        array = given.data();
        return true;
    }
};

template <class Set>
void set_fields(const nb::dict& given, Set set) {
    for (auto [key, value] : given) {
        const std::string name = nb::cast<std::string>(key);
        if (!set(Field{name, value})) throw nb::type_error(("no option has the name " + name).c_str());
    }
}

// Arrays are not copied, so the caller keeps them.
CalibrationRule calibration_rule(int method, int ties, const nb::dict& option, int64_t lists) {
    CalibrationRule rule{static_cast<Calibration>(method), static_cast<Ties>(ties), 0.0f, 0.0f, 0.0f, nullptr, nullptr};
    set_fields(option, [&](const Field& field) {
        return field.set("single", rule.single) || field.set("equal", rule.equal) ||
               field.set("temperature", rule.temperature) || field.set("lower", rule.lower, lists) ||
               field.set("upper", rule.upper, lists);
    });
    return rule;
}

FusionOptions fusion_options(const nb::dict& option, int64_t lists) {
    FusionOptions options{};
    set_fields(option, [&](const Field& field) {
#define HOPFUSE_SET(name) \
    if (field.set(#name, options.name)) return true;
        HOPFUSE_FUSION_NUMBERS(HOPFUSE_SET)
#undef HOPFUSE_SET
#define HOPFUSE_SET(name, size) \
    if (field.set(#name, options.name, size)) return true;
        HOPFUSE_FUSION_ARRAYS(HOPFUSE_SET)
#undef HOPFUSE_SET
        return false;
    });
    return options;
}

void calibrate(In<float> scores, In<int64_t> counts, int method, int ties, const nb::dict& option, int32_t threads,
               Out<float> out) {
    CalibrateArgs args{static_cast<int64_t>(scores.shape(0)),
                       static_cast<int64_t>(scores.shape(1)),
                       scores.data(),
                       counts.data(),
                       calibration_rule(method, ties, option, 1),
                       out.data(),
                       {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.calibrate_f32(args); });
}

void fuse(const std::vector<In<int64_t>>& ids, const std::vector<In<float>>& scores,
          const std::vector<In<int64_t>>& counts, In<int64_t> pools, int method, int calibration, int ties,
          const nb::dict& calibration_option, const nb::dict& option, In<float> weights, bool weights_shared,
          double consensus, In<float> prior, int32_t threads, Out<int64_t> out_ids, Out<float> out_scores,
          Out<int64_t> out_counts) {
    std::vector<FuseList> lists;
    for (size_t l = 0; l < ids.size(); ++l)
        lists.push_back({static_cast<int64_t>(ids[l].shape(1)), ids[l].data(), scores[l].data(), counts[l].data()});
    FuseArgs args{static_cast<int64_t>(out_ids.shape(0)),
                  static_cast<int32_t>(lists.size()),
                  lists.data(),
                  pools.data(),
                  static_cast<FusionMethod>(method),
                  calibration_rule(calibration, ties, calibration_option, static_cast<int64_t>(lists.size())),
                  fusion_options(option, static_cast<int64_t>(lists.size())),
                  weights.data(),
                  weights_shared,
                  {static_cast<float>(consensus), prior.data(), static_cast<int64_t>(prior.shape(0))},
                  static_cast<int64_t>(out_ids.shape(1)),
                  out_ids.data(),
                  out_scores.data(),
                  out_counts.data(),
                  {threads}};
    Call(args.execution).run([&](const CpuKernels& kernels) { return kernels.fuse_f32(args); });
}

using Numbers = std::map<std::string, int>;

Numbers fusion_methods() {
    Numbers numbers;
#define HOPFUSE_NAME(name, type) numbers[#name] = static_cast<int>(FusionMethod::name);
    HOPFUSE_FUSION_METHODS(HOPFUSE_NAME)
#undef HOPFUSE_NAME
    return numbers;
}

Numbers calibrations() {
    Numbers numbers;
#define HOPFUSE_NAME(name) numbers[#name] = static_cast<int>(Calibration::name);
    HOPFUSE_CALIBRATIONS(HOPFUSE_NAME)
#undef HOPFUSE_NAME
    return numbers;
}

Numbers ties() {
    return {
        {"strict", int(Ties::strict)}, {"weak", int(Ties::weak)}, {"mean", int(Ties::mean)}, {"rank", int(Ties::rank)}};
}

// ---- On a device ---------------------------------------------------------------------------------------------

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

const Binding fuse_binding("fuse", [](Module& m) {
    m.def("fusion_methods", &fusion_methods, "The number of each fusion method.");
    m.def("calibrations", &calibrations, "The number of each calibration.");
    m.def("ties", &ties, "The number of each tie rule.");
    m.def("calibrate", &calibrate, nb::arg("scores"), nb::arg("counts"), nb::kw_only(), nb::arg("method"),
          nb::arg("ties"), nb::arg("option"), nb::arg("threads"), nb::arg("out"));
    m.def("fuse", &fuse, nb::arg("ids"), nb::arg("scores"), nb::arg("counts"), nb::kw_only(), nb::arg("pools"),
          nb::arg("method"), nb::arg("calibration"), nb::arg("ties"), nb::arg("calibration_option"), nb::arg("option"),
          nb::arg("weights"), nb::arg("weights_shared"), nb::arg("consensus"), nb::arg("prior"), nb::arg("threads"),
          nb::arg("out_ids"), nb::arg("out_scores"), nb::arg("out_counts"));
    m.def("device_calibrate", &device_calibrate, nb::arg("queue"), nb::arg("scores"), nb::arg("counts"), nb::kw_only(),
          nb::arg("method"), nb::arg("ties"), nb::arg("option"), nb::arg("on_device"));
    m.def("device_fuse", &device_fuse, nb::arg("queue"), nb::arg("lists"), nb::kw_only(), nb::arg("pools"),
          nb::arg("method"), nb::arg("calibration"), nb::arg("ties"), nb::arg("calibration_option"), nb::arg("option"),
          nb::arg("weights"), nb::arg("consensus"), nb::arg("prior"), nb::arg("k"), nb::arg("on_device"));
});
