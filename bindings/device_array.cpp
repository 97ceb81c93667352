// hopfuse._native.DeviceArray, and the exchange of arrays with other libraries: DLPack and __cuda_array_interface__.
#include <algorithm>
#include <cstring>

#include "device_place.h"

namespace {

constexpr int32_t ON_CUDA = 2;        // DLPack's kDLCUDA
constexpr int64_t LEGACY_STREAM = 1;  // in both protocols; 0 is not permitted, because it could be another
constexpr uint64_t READ_ONLY = 1;     // a flag of DLPack

// ---- DLPack's structs, version 1 and those of before (https://dmlc.github.io/dlpack/latest/c_api.html) -------------------

struct Managed {
    nb::dlpack::dltensor tensor;
    void* context;
    void (*deleter)(Managed*);
    static constexpr const char *name = "dltensor", *used = "used_dltensor";
};

struct ManagedVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void* context;
    void (*deleter)(ManagedVersioned*);
    uint64_t flags;
    nb::dlpack::dltensor tensor;
    static constexpr const char *name = "dltensor_versioned", *used = "used_dltensor_versioned";
};

// A tensor that was exported, with what it refers to.
template <class Tensor>
struct Exported {
    Tensor managed{};
    Shape shape, strides;
    native::Owner owner;
    std::shared_ptr<native::Device> device;
    std::optional<native::Stream> freed_on;  // what must wait for the consumer's work, if anything must

    static void drop(Tensor* managed) {
        const std::unique_ptr<Exported> dropped(static_cast<Exported*>(managed->context));
        if (!dropped->freed_on.has_value()) return;
        try {
            native::Queue queue(dropped->device, *dropped->freed_on);
            queue.after({native::legacy_stream(), nullptr});
        } catch (...) {
            // The device has failed, or this process was forked.
        }
    }
};

template <class Tensor>
void drop_capsule(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, Tensor::name) == 0) return;  // a consumer has taken it
    auto* const managed = static_cast<Tensor*>(PyCapsule_GetPointer(capsule, Tensor::name));
    managed->deleter(managed);
}

bool is_legacy(const native::Stream& stream) {
    return stream.handle == nullptr || stream.handle == native::legacy_stream();
}

template <class Tensor>
nb::object export_as(const DeviceArray& array, int64_t stream, uint64_t flags) {
    auto made = std::make_unique<Exported<Tensor>>();
    made->shape = array.shape, made->owner = array.owner;
    // The memory is freed in the order of its own stream. The legacy stream is always there; another may be gone by then.
    if (stream == LEGACY_STREAM && array.stream.has_value() && !is_legacy(*array.stream))
        made->device = array.device, made->freed_on = array.stream;
    made->strides.resize(array.shape.size());
    int64_t step = 1;
    for (size_t axis = array.shape.size(); axis-- > 0; step *= array.shape[axis]) made->strides[axis] = step;
    Tensor& managed = made->managed;
    managed.tensor.data = array.data;
    managed.tensor.device = {ON_CUDA, array.device->properties().ordinal};
    managed.tensor.ndim = static_cast<int32_t>(array.shape.size());
    managed.tensor.dtype = array.dtype;
    managed.tensor.shape = made->shape.data(), managed.tensor.strides = made->strides.data();
    managed.context = made.get(), managed.deleter = &Exported<Tensor>::drop;
    if constexpr (std::is_same_v<Tensor, ManagedVersioned>) managed.version = {1, 0}, managed.flags = flags;
    const nb::object capsule = nb::steal(PyCapsule_New(&managed, Tensor::name, &drop_capsule<Tensor>));
    if (!capsule.is_valid()) throw nb::python_error();
    made.release();
    return capsule;
}

// Lets the consumer's stream wait for the pending work on the array.
void order_before(const DeviceArray& array, int64_t stream) {
    if (!array.stream.has_value() || stream == -1 || (stream == LEGACY_STREAM && is_legacy(*array.stream))) return;
    native::Queue queue(array.device, *array.stream);
    queue.before({reinterpret_cast<native::CUstream>(stream), nullptr});
}

nb::object to_dlpack(const DeviceArray& array, nb::object stream, nb::object max_version, nb::object dl_device,
                     nb::object copy) {
    if (!dl_device.is_none()) {
        const auto [kind, number] = nb::cast<std::pair<int, int>>(dl_device);
        if (kind != ON_CUDA || number != array.device->properties().ordinal)
            throw nb::buffer_error("an array of a device is exported to that device alone; copy it by x.to_numpy()");
    }
    if (!copy.is_none() && nb::cast<bool>(copy))
        throw nb::buffer_error("an array of a device is exported without a copy alone");
    const int64_t number = stream.is_none() ? LEGACY_STREAM : nb::cast<int64_t>(stream);
    if (number == 0 || number < -1)
        throw nb::value_error("stream must be None, -1, 1, 2 or the address of a stream; 0 could be two of them");
    order_before(array, number);
    if (!max_version.is_none() && nb::cast<std::pair<int, int>>(max_version).first >= 1)
        return export_as<ManagedVersioned>(array, number, array.readonly ? READ_ONLY : 0);
    if (array.readonly) throw nb::buffer_error("a read-only array needs DLPack 1.0, and the consumer asks for less");
    return export_as<Managed>(array, number, 0);
}

template <class Tensor>
native::Owner owner_of(Tensor* managed) {
    return {managed, [](const void* held) {
                Tensor* const own = static_cast<Tensor*>(const_cast<void*>(held));
                if (own->deleter == nullptr || !nb::is_alive()) return;
                const nb::gil_scoped_acquire acquire;  // the deleter may belong to an object of Python
                own->deleter(own);
            }};
}

// An array over the tensor of a capsule, which it takes, and its strides in elements, or None.
nb::tuple from_capsule(std::shared_ptr<native::Device> device, nb::handle capsule, const DeviceQueue& queue) {
    DeviceArray array;
    array.device = std::move(device);
    const nb::dlpack::dltensor* tensor;
    if (PyCapsule_IsValid(capsule.ptr(), ManagedVersioned::name) != 0) {
        auto* const managed =
            static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), ManagedVersioned::name));
        if (managed->version.major != 1)
            throw nb::buffer_error(("DLPack " + std::to_string(managed->version.major) + " is not supported").c_str());
        PyCapsule_SetName(capsule.ptr(), ManagedVersioned::used);
        array.owner = owner_of(managed);
        array.readonly = (managed->flags & READ_ONLY) != 0;
        tensor = &managed->tensor;
    } else {
        auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Managed::name));
        if (managed == nullptr) throw nb::python_error();
        PyCapsule_SetName(capsule.ptr(), Managed::used);
        array.owner = owner_of(managed);
        tensor = &managed->tensor;
    }
    numpy_dtype(tensor->dtype);  // throws if it has none
    array.dtype = tensor->dtype;
    array.data = static_cast<char*>(tensor->data) + tensor->byte_offset;
    array.shape.assign(tensor->shape, tensor->shape + tensor->ndim);
    array.stream = queue.stream, array.borrowed = true;
    nb::object strides = nb::none();
    if (tensor->strides != nullptr) {
        nb::list made;
        for (int32_t axis = 0; axis < tensor->ndim; ++axis) made.append(tensor->strides[axis]);
        strides = nb::tuple(made);
    }
    return nb::make_tuple(std::move(array), strides);
}

// An array over memory that an object of Python owns.
DeviceArray over(std::shared_ptr<native::Device> device, uint64_t address, Shape shape, nb::handle dtype,
                 nb::object owner, std::optional<uint64_t> stream, nb::object stream_owner, bool readonly) {
    DeviceArray made;
    made.device = std::move(device), made.owner = python_owner(std::move(owner));
    made.data = reinterpret_cast<void*>(address), made.shape = std::move(shape), made.dtype = dtype_from(dtype);
    made.readonly = readonly;
    made.borrowed = !stream.has_value();  // its library does not order the memory's next use after this one
    if (stream.has_value())
        made.stream = {reinterpret_cast<native::CUstream>(*stream), python_owner(std::move(stream_owner))};
    return made;
}

// The number of the device that holds an address.
int ordinal_of(const native::Device& device, uint64_t address) {
    int ordinal = 0;
    native::CUpointer_attribute asked[] = {native::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* values[] = {&ordinal};
    const native::Driver& driver = device.driver();
    native::check(driver, driver.cuPointerGetAttributes(1, asked, values, address), "asking where an array is");
    return ordinal;
}

nb::dict interface_of(const DeviceArray& array) {
    nb::dict made;
    made["version"] = 3;
    made["shape"] = as_tuple(array.shape);
    made["typestr"] = numpy_dtype(array.dtype).attr("str");
    made["data"] = nb::make_tuple(array.size() == 0 ? 0 : reinterpret_cast<uintptr_t>(array.data), array.readonly);
    made["strides"] = nb::none();
    made["stream"] = nb::none();
    if (array.stream.has_value()) {
        const auto handle = reinterpret_cast<int64_t>(array.stream->handle);
        made["stream"] = handle == 0 ? LEGACY_STREAM : handle;
    }
    return made;
}

// ---- Shapes ------------------------------------------------------------------------------------------------------------

DeviceArray reshape(const DeviceArray& array, nb::args sides) {
    Shape shape;
    if (sides.size() == 1 && nb::isinstance<nb::sequence>(sides[0])) shape = nb::cast<Shape>(sides[0]);
    else
        for (nb::handle side : sides) shape.push_back(nb::cast<int64_t>(side));
    const auto open = std::find(shape.begin(), shape.end(), -1);
    const auto size = static_cast<int64_t>(array.size());
    if (open != shape.end()) {
        *open = 1;
        int64_t others = 1;
        for (const int64_t side : shape) others *= side;
        *open = others == 0 ? 0 : size / others;
    }
    DeviceArray made = array;
    made.shape = std::move(shape);
    const bool is_negative = std::any_of(made.shape.begin(), made.shape.end(), [](int64_t side) { return side < 0; });
    if (is_negative || made.size() != array.size())
        throw nb::value_error(("an array of " + std::to_string(size) + " elements cannot have this shape").c_str());
    return made;
}

DeviceArray view(const DeviceArray& array, nb::handle dtype) {
    DeviceArray made = array;
    made.dtype = dtype_from(dtype);
    if (made.dtype.bits == array.dtype.bits) return made;
    const int64_t last = array.shape.empty() ? 0 : array.shape.back() * array.dtype.bits;
    if (array.shape.empty() || last % made.dtype.bits != 0)
        throw nb::value_error("the bytes of a row are no multiple of an element of this dtype");
    made.shape.back() = last / made.dtype.bits;
    return made;
}

DeviceArray rows(const DeviceArray& array, nb::handle key) {
    if (array.shape.empty()) throw nb::index_error("an array without axes has no rows");
    DeviceArray made = array;
    const int64_t count = array.shape[0];
    const size_t row = count == 0 ? 0 : array.nbytes() / static_cast<size_t>(count);
    Py_ssize_t begin = 0;
    if (PySlice_Check(key.ptr())) {
        Py_ssize_t end = 0, step = 0;
        if (PySlice_Unpack(key.ptr(), &begin, &end, &step) != 0) throw nb::python_error();
        made.shape[0] = PySlice_AdjustIndices(count, &begin, &end, step);
        if (step != 1) throw nb::index_error("rows of an array of a device are taken without a step");
    } else {
        begin = PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError);
        if (begin == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
        if (begin < 0) begin += count;
        if (begin < 0 || begin >= count) throw nb::index_error("there is no such row");
        made.shape.erase(made.shape.begin());
    }
    made.data = static_cast<char*>(array.data) + static_cast<size_t>(begin) * row;
    return made;
}

nb::object to_numpy(const DeviceArray& array) {
    // The queue of this thread if it records, where reading is refused; else the stream of the pending work.
    DeviceQueue queue = queue_of_thread(array.device);
    if (queue.run == nullptr && array.stream.has_value()) queue.stream = *array.stream;
    DeviceCall call(queue);
    Results out(call, false);
    call.run([&](native::Queue& from) {
        if (from.fixed()) throw native::NotRecordable("a copy to the host");
        out.add_bytes("array", array);
        out.read();
    });
    return out.dict()["array"];
}

[[noreturn]] nb::object refuse_array(const DeviceArray&, nb::args, nb::kwargs) {
    throw nb::type_error("an array on a device is not copied to the host implicitly; use x.to_numpy()");
}

std::string describe(const DeviceArray& array) {
    const std::string shape = nb::cast<std::string>(nb::str(as_tuple(array.shape)));
    return "DeviceArray(shape=" + shape + ", dtype=" + nb::cast<std::string>(nb::str(numpy_dtype(array.dtype))) +
           ", device=" + std::to_string(array.device->properties().ordinal) + ")";
}

}  // namespace

native::Owner python_owner(nb::object object) {
    if (!object.is_valid() || object.is_none()) return nullptr;
    return {object.release().ptr(), [](const void* held) {
                if (!nb::is_alive()) return;
                const nb::gil_scoped_acquire acquire;
                Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
            }};
}

nb::object as_tuple(const Shape& shape) {
    nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    for (size_t axis = 0; axis < shape.size(); ++axis)
        PyTuple_SetItem(made.ptr(), static_cast<Py_ssize_t>(axis), PyLong_FromLongLong(shape[axis]));
    return made;
}

const Binding device_array_binding("device_array", [](Module& m) {
    nb::class_<DeviceArray>(m, "DeviceArray",
                            "An array in the memory of a device, C-contiguous. Other libraries import it by DLPack or "
                            "__cuda_array_interface__, without a copy.")
        .def_prop_ro(
            "shape", [](const DeviceArray& array) { return as_tuple(array.shape); },
            nb::sig("def shape(self) -> tuple[int, ...]"))
        .def_prop_ro(
            "dtype", [](const DeviceArray& array) { return numpy_dtype(array.dtype); },
            nb::sig("def dtype(self) -> numpy.dtype[typing.Any]"))
        .def_prop_ro("ndim", [](const DeviceArray& array) { return array.shape.size(); })
        .def_prop_ro("size", &DeviceArray::size)
        .def_prop_ro("nbytes", &DeviceArray::nbytes)
        .def_prop_ro(
            "device", [](const DeviceArray& array) { return array.device->properties().ordinal; },
            "The number of the device.")
        .def(
            "is_on",
            [](const DeviceArray& array, const native::Device& device) { return array.device.get() == &device; },
            nb::arg("device"), "Whether the array is one of this device object.")
        .def_prop_ro(
            "address", [](const DeviceArray& array) { return reinterpret_cast<uintptr_t>(array.data); },
            "The address on the device.")
        .def_prop_ro(
            "stream",
            [](const DeviceArray& array) -> std::optional<int64_t> {
                if (!array.stream.has_value()) return std::nullopt;
                return reinterpret_cast<int64_t>(array.stream->handle);
            },
            "The stream of the pending work, or None.")
        .def("reshape", &reshape, nb::arg("sides"),
             nb::sig("def reshape(self, *sides: int | Sequence[int]) -> DeviceArray"),
             "Another shape of the same elements; one side may be -1.")
        .def("view", &view, nb::arg("dtype"), "The same bytes as another dtype.")
        .def("__getitem__", &rows, nb::arg("key"), nb::sig("def __getitem__(self, key: int | slice) -> DeviceArray"),
             "A row, or rows from begin to end, without a copy.")
        .def("__len__",
             [](const DeviceArray& array) {
                 if (array.shape.empty()) throw nb::type_error("an array without axes has no length");
                 return array.shape[0];
             })
        .def("__repr__", &describe)
        .def("to_numpy", &to_numpy, nb::sig("def to_numpy(self) -> numpy.typing.NDArray[typing.Any]"),
             "Copy to the host, waiting for the pending work.")
        .def("get", &to_numpy, nb::sig("def get(self) -> numpy.typing.NDArray[typing.Any]"), "The same as to_numpy().")
        .def("__array__", &refuse_array,
             nb::sig("def __array__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
             "Raise TypeError: copies to the host are explicit.")
        .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
             nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, "
                     "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"))
        .def(
            "__dlpack_device__",
            [](const DeviceArray& array) { return nb::make_tuple(ON_CUDA, array.device->properties().ordinal); },
            nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
        .def_prop_ro("__cuda_array_interface__", &interface_of,
                     nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"));
    m.def("device_array_over", &over, nb::arg("device"), nb::arg("address"), nb::arg("shape"), nb::arg("dtype"),
          nb::arg("owner"), nb::arg("stream").none(), nb::arg("stream_owner").none(), nb::arg("readonly"),
          "An array over the memory of an object, which it keeps alive; its work is ordered after that of the stream.");
    m.def(
        "device_array_of",
        [](std::shared_ptr<native::Device> device, const DeviceArray& array) {
            DeviceArray made = array;
            made.owner = std::make_shared<DeviceArray>(array), made.device = std::move(device);
            return made;
        },
        nb::arg("device"), nb::arg("array"), "A view of an array of another object of the same device.");
    m.def("device_array_of_capsule", &from_capsule, nb::arg("device"), nb::arg("capsule"), nb::arg("queue"),
          nb::sig("def device_array_of_capsule(device: Device, capsule: object, queue: DeviceQueue) -> "
                  "tuple[DeviceArray, tuple[int, ...] | None]"),
          "An array over the tensor of a capsule, which is ready on the stream of the queue, and its strides or None.");
    m.def("device_of_address", &ordinal_of, nb::arg("device"), nb::arg("address"),
          "The number of the device that holds an address.");
});
