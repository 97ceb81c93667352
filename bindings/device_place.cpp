// hopfuse._native.Device, where calls of a thread are queued, and the errors of the host side of a device.
#include "device_place.h"

#include <nanobind/stl/tuple.h>

#include <algorithm>

namespace {

// The streams and recordings that this thread is in, innermost last.
thread_local std::vector<DeviceQueue> places;

// What Python's hopfuse.backends.cuda gives: raises the error of a device, by its kind and values. Never freed.
PyObject* raise_error = nullptr;

void raise_with(const char* kind, nb::dict values) {
    nb::handle raise(raise_error);
    raise(kind, **values);
    throw std::logic_error("an error of a device raised nothing");
}

void raise_device_error(const std::exception_ptr& thrown) {
    nb::dict values;
    const char* kind = nullptr;
    try {
        std::rethrow_exception(thrown);
    } catch (const native::NoMemory& error) {
        kind = "no_memory";
        values["asked"] = error.asked, values["free"] = error.free, values["total"] = error.total;
    } catch (const native::NoRoom& error) {
        kind = "no_room";
        values["what"] = error.what_for, values["nbytes"] = error.needed, values["free"] = error.free;
    } catch (const native::DriverError& error) {
        kind = error.is_no_memory() ? "driver_memory" : "failed";
        values["what"] = error.call, values["error"] = error.name + ": " + error.text;
        if (!error.is_no_memory()) values["final"] = error.is_sticky();
    } catch (const native::NoDriver& error) {
        kind = native::is_forked() ? "forked" : "no_driver";
        values["said"] = std::string(error.what()), values["version"] = error.version;
    } catch (const native::InvalidSetting& error) {
        kind = "setting";
        values["variable"] = error.variable, values["given"] = error.given, values["allowed"] = error.allowed;
    }
    raise_with(kind, values);
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        try {
            std::rethrow_exception(thrown);
        } catch (const native::NotRecordable& error) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
        } catch (const native::NoMemory&) {
            raise_device_error(thrown);
        } catch (const native::NoRoom&) {
            raise_device_error(thrown);
        } catch (const native::DriverError&) {
            raise_device_error(thrown);
        } catch (const native::NoDriver&) {
            raise_device_error(thrown);
        } catch (const native::InvalidSetting&) {
            raise_device_error(thrown);
        }
    } catch (nb::python_error& raised) {
        raised.restore();
    }
}

// Queues this thread's calls on a stream between __enter__ and __exit__, unless they are recorded.
struct StreamScope {
    DeviceQueue queue;
};

// The image that a function of Python returns: bytes, origin, and None or a function of a reason.
native::Image image_from(const nb::object& made) {
    native::Image image;
    const auto bytes = nb::cast<nb::bytes>(made[0]);
    image.bytes.assign(bytes.c_str(), bytes.size());
    image.origin = nb::cast<std::string>(made[1]);
    const nb::object otherwise = made[2];
    if (otherwise.is_none()) return image;
    image.otherwise = [held = python_owner(otherwise)](const std::string& why) {
        const nb::gil_scoped_acquire acquire;
        nb::handle function(static_cast<const PyObject*>(held.get()));
        return image_from(function(why));
    };
    return image;
}

std::shared_ptr<native::Device> open_device(int ordinal, nb::object code) {
    const native::Owner held = python_owner(std::move(code));
    const nb::gil_scoped_release release;  // a context takes up to seconds
    return native::Device::open(native::driver(), ordinal, [held](const std::string& unit) {
        const nb::gil_scoped_acquire acquire;
        nb::handle function(static_cast<const PyObject*>(held.get()));
        return image_from(function(unit));
    });
}

// Why the driver cannot be used, and its version or 0; None if it can.
nb::object driver_problem() {
    try {
        const nb::gil_scoped_release release;  // CUDA takes up to seconds to start
        native::driver();
    } catch (const native::NoDriver& error) {
        return nb::make_tuple(std::string(error.what()), error.version);
    }
    return nb::none();
}

// The number of the device whose context is current on this thread, or None.
std::optional<int> current_device() {
    const native::Driver& driver = native::driver();
    native::CUcontext context = nullptr;
    native::CUdevice device = 0;
    if (driver.cuCtxGetCurrent(&context) != native::CUDA_SUCCESS || context == nullptr) return std::nullopt;
    if (driver.cuCtxGetDevice(&device) != native::CUDA_SUCCESS) return std::nullopt;
    return device;
}

int count_devices() {
    const native::Driver& driver = native::driver();
    int count = 0;
    native::check(driver, driver.cuDeviceGetCount(&count), "counting devices");
    return count;
}

// The name and the compute capability of a device, before it is opened.
nb::tuple summary(int ordinal) {
    const native::Driver& driver = native::driver();
    const char* const what = "asking for a device's properties";
    native::CUdevice device = 0;
    native::check(driver, driver.cuDeviceGet(&device, ordinal), what);
    int major = 0, minor = 0;
    native::check(driver,
                  driver.cuDeviceGetAttribute(&major, native::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                  what);
    native::check(driver,
                  driver.cuDeviceGetAttribute(&minor, native::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
                  what);
    char name[256] = {};
    native::check(driver, driver.cuDeviceGetName(name, sizeof name - 1, device), what);
    return nb::make_tuple(std::string(name), 10 * major + minor);
}

DeviceArray empty(const std::shared_ptr<native::Device>& device, const nb::object& shape, nb::handle dtype) {
    DeviceCall call(queue_of_thread(device));
    DeviceArray made{device, nullptr, nullptr, {}, dtype_from(dtype), call.place().stream};
    if (nb::isinstance<nb::int_>(shape)) made.shape = {nb::cast<int64_t>(shape)};
    else made.shape = nb::cast<Shape>(shape);
    const native::Array<std::byte> memory = call.queue().empty<std::byte>(made.nbytes());
    made.owner = memory.owner(), made.data = memory.data();
    return made;
}

DeviceArray upload(const std::shared_ptr<native::Device>& device, nb::handle array) {
    DeviceCall call(queue_of_thread(device));
    Operands in(call);
    const auto given = in.take<std::byte>(array);
    call.run([&](native::Queue&) { in.upload(); });
    return {device, given.array().owner(), given.array().data(), given.shape(), given.dtype(), call.place().stream};
}

}  // namespace

DeviceQueue queue_of_thread(const std::shared_ptr<native::Device>& device) {
    for (auto place = places.rbegin(); place != places.rend(); ++place)
        if (place->device == device) return *place;
    return {device, device->own_stream(), nullptr};
}

bool is_recording(const native::Device& device) {
    return std::any_of(places.begin(), places.end(),
                       [&](const DeviceQueue& place) { return place.device.get() == &device && place.run != nullptr; });
}

void enter_queue(DeviceQueue queue) { places.push_back(std::move(queue)); }

void leave_queue() { places.pop_back(); }

const Binding device_place_binding("device_place", [](Module& m) {
    nb::register_exception_translator(&translate, nullptr);
    m.def(
        "use_device_errors", [](nb::object raise) { raise_error = raise.release().ptr(); }, nb::arg("raise_error"),
        "Take the function that raises the error of a device, by its kind and values.");
    m.def("current_device", &current_device, "The number of the device that is current on this thread, or None.");
    m.def("count_devices", &count_devices, "The number of devices.");
    m.def("device_summary", &summary, nb::arg("ordinal"),
          nb::sig("def device_summary(ordinal: int) -> tuple[str, int]"),
          "The name and the compute capability of a device.");
    m.def("driver_problem", &driver_problem, nb::sig("def driver_problem() -> tuple[str, int] | None"),
          "Why the driver cannot be used, and its version or 0; None if it can.");
    m.def("driver_version", [] { return native::driver().version; }, "The driver's version, 12040 for CUDA 12.4.");

    nb::class_<native::Sizes> sizes(m, "DeviceSizes", "Sizes of units of work, on which no result depends.");
#define HOPFUSE_SIZE(name) sizes.def_rw(#name, &native::Sizes::name)
    HOPFUSE_SIZE(tile_rows), HOPFUSE_SIZE(tile_scores), HOPFUSE_SIZE(batch), HOPFUSE_SIZE(scored_at_once);
    HOPFUSE_SIZE(split_rows), HOPFUSE_SIZE(most_splits), HOPFUSE_SIZE(widest), HOPFUSE_SIZE(sort_chunk);
    HOPFUSE_SIZE(sort_keys), HOPFUSE_SIZE(split_blocks), HOPFUSE_SIZE(coded_bytes), HOPFUSE_SIZE(scanned_rows),
        HOPFUSE_SIZE(most_codes);
    HOPFUSE_SIZE(part);
    HOPFUSE_SIZE(shared_entries), HOPFUSE_SIZE(workspace), HOPFUSE_SIZE(most_places), HOPFUSE_SIZE(most_lanes);
#undef HOPFUSE_SIZE

    nb::class_<StreamScope>(m, "StreamScope", "A block in which calls are queued on a stream.")
        .def("__enter__",
             [](const StreamScope& scope) {
                 const DeviceQueue now = queue_of_thread(scope.queue.device);
                 enter_queue(now.run != nullptr ? now : scope.queue);
             })
        .def(
            "__exit__", [](const StreamScope&, nb::args) { leave_queue(); },
            nb::sig("def __exit__(self, *args: object) -> None"));

    using native::Device;
    nb::class_<Device>(m, "Device", "A device of this process, for all threads.")
        .def_static(
            "open", &open_device, nb::arg("ordinal"), nb::arg("code"),
            "Open a device; `code` returns the image of a unit of kernels, its origin, and what else to load or None.")
        .def_static(
            "counting",
            [](std::optional<int> like) {
                if (!like) return Device::counting();
                return Device::counting(Device::properties_of(native::driver(), *like));
            },
            nb::arg("like") = nb::none(),
            "A device on which nothing runs: it counts the memory of the device with this number, or of a large one.")
        .def_prop_ro("ordinal", [](const Device& device) { return device.properties().ordinal; })
        .def_prop_ro("name", [](const Device& device) { return device.properties().name; })
        .def_prop_ro("uuid", [](const Device& device) { return device.properties().uuid; })
        .def_prop_ro("capability", [](const Device& device) { return device.properties().capability; })
        .def_prop_ro("driver_version", [](const Device& device) { return device.properties().driver_version; })
        .def_prop_ro("multiprocessors", [](const Device& device) { return device.properties().multiprocessors; })
        .def_prop_ro("total_bytes", [](const Device& device) { return device.properties().total_bytes; })
        .def_prop_ro("l2_bytes", [](const Device& device) { return device.properties().l2_bytes; })
        .def_prop_ro("is_counting", &Device::is_counting)
        .def_prop_ro(
            "is_exclusive", [](const Device& device) { return device.properties().is_exclusive; },
            "Whether one process at a time may use the device, which CUDA calls exclusive-process mode.")
        .def_prop_ro(
            "sizes", [](Device& device) -> native::Sizes& { return device.sizes; }, nb::rv_policy::reference_internal)
        .def_prop_rw(
            "cooperative", [](const Device& device) { return device.cooperative.load(); },
            [](Device& device, bool may) { device.cooperative = may; }, "Whether launches may be cooperative.")
        .def_prop_ro(
            "recording", [](const Device& device) { return device.is_counting() || is_recording(device); },
            "Whether results of this thread's calls cannot be read, as in a recording.")
        .def("queue", &queue_of_thread, "Where a call of this thread is queued.")
        .def(
            "on_stream",
            [](std::shared_ptr<Device> device, uint64_t handle, nb::object owner) {
                return StreamScope{
                    {device, {reinterpret_cast<native::CUstream>(handle), python_owner(owner)}, nullptr}};
            },
            nb::arg("handle"), nb::arg("owner").none(), "Queue this thread's calls on a stream in a with block.")
        .def(
            "on_stream_of",
            [](std::shared_ptr<Device> device, const DeviceArray& array) {
                return StreamScope{{device, array.stream.has_value() ? *array.stream : device->own_stream(), nullptr}};
            },
            nb::arg("array"), "Queue this thread's calls on the stream of an array's pending work in a with block.")
        .def("empty", &empty, nb::arg("shape"), nb::arg("dtype"), "An array with undefined elements.")
        .def("upload", &upload, nb::arg("array"), "A copy of an array of the host.")
        .def("free_bytes", &Device::free_bytes, "Bytes that an allocation can still get.")
        .def("trim", &Device::trim, nb::call_guard<nb::gil_scoped_release>(), "Give cached memory back to the device.")
        .def("used_bytes", &Device::used_bytes, "Bytes in use, on a counting device.")
        .def("peak_bytes", &Device::peak_bytes, "The most bytes in use, on a counting device.")
        .def("reset_peak", &Device::reset_peak)
        .def("origins", &Device::origins, "Where the code of the loaded units comes from.")
        .def("start_timing", &Device::start_timing, "Time the launches of this thread until read_times().")
        .def(
            "read_times",
            [](Device& device) {
                std::vector<std::tuple<std::string, double>> times;
                for (const native::LaunchTime& one : device.read_times()) times.emplace_back(one.kernel, one.seconds);
                return times;
            },
            "The launches and their times in seconds, waiting for them.")
        .def(
            "collect_with",
            [](Device& device, nb::object collect) {
                device.collect_with([held = python_owner(std::move(collect))] {
                    const nb::gil_scoped_acquire acquire;
                    nb::handle function(static_cast<const PyObject*>(held.get()));
                    function();
                });
            },
            nb::arg("collect"), "Take what frees memory of Python's before an allocation fails.");
});
