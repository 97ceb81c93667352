// Calls, operands and results of the operations of a device.
#include "device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "../kernels/cpu/threads.h"
#include "device_place.h"

namespace {

// What Python's hopfuse.backends.cuda gives: raises the error of a query, by its status and row. Never freed.
PyObject* raise_fault = nullptr;

DType type_of_buffer(const char* format, Py_ssize_t itemsize) {
    using Code = nb::dlpack::dtype_code;
    const char* code = format == nullptr ? "B" : format;
    if (std::strchr("@=<|", *code) != nullptr && *code != '\0') ++code;
    const uint8_t bits = static_cast<uint8_t>(8 * itemsize);
    if (std::strlen(code) == 1) {
        if (std::strchr("efd", *code) != nullptr) return {static_cast<uint8_t>(Code::Float), bits, 1};
        if (std::strchr("bhilqn", *code) != nullptr) return {static_cast<uint8_t>(Code::Int), bits, 1};
        if (std::strchr("BHILQN", *code) != nullptr) return {static_cast<uint8_t>(Code::UInt), bits, 1};
        if (*code == '?') return {static_cast<uint8_t>(Code::Bool), bits, 1};
    }
    throw nb::type_error("an array's elements are not numbers in the machine's order");
}

bool is_type(DType found, DType asked) {
    if (asked.bits == 0 || found == asked) return true;
    const bool is_bool = found.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Bool) && found.bits == 8;
    return is_bool && asked == nb::dtype<uint8_t>();
}

std::string text_of(DType dtype) {
    static const char* const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    return (dtype.code < std::size(kinds) ? kinds[dtype.code] : "type") + std::to_string(dtype.bits);
}

void check(DType found, size_t rank, DType asked, int asked_rank) {
    if (!is_type(found, asked))
        throw nb::type_error(("an operand is " + text_of(found) + ", not " + text_of(asked)).c_str());
    if (asked_rank != Operands::ANY_RANK && rank != static_cast<size_t>(asked_rank))
        throw nb::type_error(
            ("an operand has " + std::to_string(rank) + " axes, not " + std::to_string(asked_rank)).c_str());
}

size_t product(const Shape& shape) {
    size_t size = 1;
    for (const int64_t side : shape) size *= static_cast<size_t>(side);
    return size;
}

// A block of pinned memory that NumPy arrays are views of.
struct PinnedBlock {
    std::shared_ptr<std::byte[]> bytes;
    Py_ssize_t size;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    PinnedBlock& block = *nb::inst_ptr<PinnedBlock>(nb::handle(self));
    return PyBuffer_FillInfo(view, self, block.bytes.get(), block.size, 0, flags);
}

PyType_Slot block_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

// Arrays that calls still read, of libraries that do not know of it.
class Borrowed {
public:
    static Borrowed& get() {
        static Borrowed* const all = new Borrowed();
        return *all;
    }

    // Keeps them alive until what is queued now is over.
    void hold(native::Queue& queue, std::vector<native::Owner> owners) {
        const native::Driver& driver = queue.device().driver();
        native::CUevent event = nullptr;
        if (driver.cuEventCreate(&event, native::CU_EVENT_DISABLE_TIMING) != native::CUDA_SUCCESS ||
            driver.cuEventRecord(event, queue.stream().handle) != native::CUDA_SUCCESS) {
            if (event != nullptr) driver.cuEventDestroy(event);
            queue.wait();
            return;
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        held_.push_back({queue.device().shared_from_this(), event, std::move(owners)});
        count_ = held_.size();
    }

    // Drops those whose work is over; the device's context is current.
    void sweep() {
        if (count_ == 0) return;
        std::vector<Held> over;  // dropped after the lock, since objects of Python may be behind them
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Held& one : held_)
            if (one.device->driver().cuEventQuery(one.event) != native::CUDA_ERROR_NOT_READY)
                over.push_back(std::move(one));
        std::erase_if(held_, [](const Held& one) { return one.owners.empty(); });
        count_ = held_.size();
        for (const Held& one : over) one.device->driver().cuEventDestroy(one.event);
    }

private:
    struct Held {
        std::shared_ptr<native::Device> device;  // dropped after the arrays
        native::CUevent event;
        std::vector<native::Owner> owners;
    };
    std::mutex mutex_;
    std::vector<Held> held_;
    std::atomic<size_t> count_{0};
};

// Objects of NumPy, found once and never freed.
struct NumPy {
    struct Named {
        DType type;
        PyObject* dtype;
    };
    PyObject *ndarray, *dtype;
    std::vector<Named> types;

    NumPy() {
        const nb::module_ numpy = nb::module_::import_("numpy");
        ndarray = nb::object(numpy.attr("ndarray")).release().ptr();
        dtype = nb::object(numpy.attr("dtype")).release().ptr();
        using Code = nb::dlpack::dtype_code;
        const std::tuple<Code, int, const char*> names[] = {
            {Code::Float, 32, "f4"},   {Code::Int, 64, "i8"},      {Code::Int, 32, "i4"},   {Code::Float, 64, "f8"},
            {Code::UInt, 8, "u1"},     {Code::Bool, 8, "?"},       {Code::Float, 16, "f2"}, {Code::Int, 8, "i1"},
            {Code::Int, 16, "i2"},     {Code::UInt, 16, "u2"},     {Code::UInt, 32, "u4"},  {Code::UInt, 64, "u8"},
            {Code::Complex, 64, "c8"}, {Code::Complex, 128, "c16"}};
        for (const auto& [code, bits, name] : names) {
            const DType type{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
            types.push_back({type, nb::object(numpy.attr("dtype")(name)).release().ptr()});
        }
    }

    static const NumPy& get() {
        static const NumPy* const found = new NumPy();
        return *found;
    }
};

}  // namespace

nb::object numpy_dtype(DType dtype) {
    for (const NumPy::Named& named : NumPy::get().types)
        if (named.type == dtype) return nb::borrow(named.dtype);
    throw nb::type_error(("NumPy has no dtype like " + text_of(dtype)).c_str());
}

DType dtype_from(nb::handle dtype) {
    const NumPy& numpy = NumPy::get();
    nb::object given = nb::borrow(dtype);
    if (!PyObject_TypeCheck(given.ptr(), reinterpret_cast<PyTypeObject*>(numpy.dtype)))
        given = nb::handle(numpy.dtype)(dtype);
    for (const NumPy::Named& named : numpy.types)
        if (named.dtype == given.ptr() || PyObject_RichCompareBool(named.dtype, given.ptr(), Py_EQ) == 1)
            return named.type;
    throw nb::type_error("an array of a device holds numbers in the machine's order");
}

nb::object block_object(std::shared_ptr<std::byte[]> block, size_t size) {
    return nb::cast(PinnedBlock{std::move(block), static_cast<Py_ssize_t>(size)});
}

nb::object pinned_array(const nb::object& block, size_t begin, const Shape& shape, DType dtype) {
    PyObject* const given[] = {as_tuple(shape).release().ptr(), numpy_dtype(dtype).release().ptr(), block.ptr(),
                               PyLong_FromSize_t(begin)};
    const nb::object made = nb::steal(PyObject_Vectorcall(NumPy::get().ndarray, given, 4, nullptr));
    for (const size_t own : {0, 1, 3}) Py_DECREF(given[own]);
    if (!made.is_valid()) throw nb::python_error();
    return made;
}

void raise_query_fault(int32_t fault, int64_t row) {
    nb::handle raise(raise_fault);
    raise(fault, row);
    throw std::logic_error("a fault of a query raised nothing");
}

size_t DeviceArray::size() const { return product(shape); }

// ---- Calls --------------------------------------------------------------------------------------------------------------

DeviceCall::DeviceCall(const DeviceQueue& queue) : place_(queue), stop_(execution_) {
    if (place_.run != nullptr) {
        if (place_.run->queue == nullptr) throw std::invalid_argument("the queue of a recording that has ended");
        queue_ = place_.run->queue;
    } else {
        queue_ = &own_.emplace(place_.device, place_.stream);
    }
    queue_->check_with(&checkpoint, this);
    Borrowed::get().sweep();
}

DeviceCall::~DeviceCall() { queue_->check_with(nullptr, nullptr); }

void DeviceCall::checkpoint(void* context) {
    try {
        hopfuse::check_stop(static_cast<DeviceCall*>(context)->execution_);
    } catch (const hopfuse::Stopped&) {
        throw native::Cancelled();
    }
}

void DeviceCall::order(const DeviceArray& array) {
    if (queue_->fixed()) {
        queue_->keep(array.owner);
        if (array.stream.has_value()) queue_->after(*array.stream);
        return;
    }
    if (array.borrowed) borrowed_.push_back(array.owner);
    if (!array.stream.has_value() || array.stream->handle == queue_->stream().handle) return;
    for (const native::Stream& other : others_)
        if (other.handle == array.stream->handle) return;
    queue_->after(*array.stream);
    others_.push_back(*array.stream);
}

void DeviceCall::order_after() {
    for (const native::Stream& other : others_) queue_->before(other);
    if (!borrowed_.empty()) Borrowed::get().hold(*queue_, std::move(borrowed_));
}

void DeviceCall::order_after_failure() noexcept {
    try {
        order_after();
    } catch (...) {
        // The device has failed, and the body's error says so.
    }
}

// ---- Operands -----------------------------------------------------------------------------------------------------------

Operands::~Operands() {
    for (Slot& slot : slots_) PyBuffer_Release(&slot.view);
}

size_t Operands::add(nb::handle given, DType type, int rank, bool stays) {
    DeviceArray* array = nullptr;
    if (!stays && nb::try_cast<DeviceArray*>(given, array, false) && array != nullptr) {
        add_device(*array, type, rank);
    } else {
        add_host(given, type, rank, PyBUF_CONTIG_RO | PyBUF_FORMAT);
        slots_.back().stays = stays;
    }
    return slots_.size() - 1;
}

size_t Operands::add_target(nb::handle given, DType type, int rank) {
    DeviceArray* array = nullptr;
    if (nb::try_cast<DeviceArray*>(given, array, false) && array != nullptr) {
        if (array->readonly) throw nb::type_error("an array to write to is read-only");
        add_device(*array, type, rank);
    } else {
        add_host(given, type, rank, PyBUF_CONTIG | PyBUF_FORMAT);
        slots_.back().stays = true;
    }
    return slots_.size() - 1;
}

size_t Operands::add_none() {
    slots_.emplace_back().is_none = true;
    return slots_.size() - 1;
}

void Operands::add_device(const DeviceArray& array, DType type, int rank) {
    check(array.dtype, array.shape.size(), type, rank);
    if (array.device != call_.place().device) throw nb::type_error("an operand is on another device than the call");
    call_.order(array);
    Slot& slot = slots_.emplace_back();
    slot.shape = array.shape, slot.dtype = array.dtype, slot.size = array.size(), slot.itemsize = array.dtype.bits / 8;
    slot.is_there = true, slot.owner = array.owner, slot.data = array.data;
}

void Operands::add_host(nb::handle given, DType type, int rank, int flags) {
    Slot& slot = slots_.emplace_back();
    if (PyObject_GetBuffer(given.ptr(), &slot.view, flags) != 0) throw nb::python_error();
    const Py_buffer& view = slot.view;
    slot.dtype = type_of_buffer(view.format, view.itemsize);
    check(slot.dtype, static_cast<size_t>(view.ndim), type, rank);
    slot.shape.assign(view.shape, view.shape + view.ndim);
    slot.itemsize = static_cast<size_t>(view.itemsize), slot.size = static_cast<size_t>(view.len) / slot.itemsize;
}

void Operands::upload() {
    std::vector<const void*> data;
    std::vector<size_t> nbytes;
    for (const Slot& slot : slots_) {
        if (slot.is_none || slot.is_there || slot.stays) continue;
        data.push_back(slot.view.buf), nbytes.push_back(static_cast<size_t>(slot.view.len));
    }
    if (data.empty()) return;
    std::vector<void*> there(data.size());
    std::vector<native::Owner> owners(data.size());
    call_.queue().upload_bytes(data, nbytes, there, owners);
    size_t at = 0;
    for (Slot& slot : slots_) {
        if (slot.is_none || slot.is_there || slot.stays) continue;
        slot.data = there[at], slot.owner = std::move(owners[at]), ++at;
    }
}

// ---- Results ------------------------------------------------------------------------------------------------------------

size_t Results::Result::nbytes() const { return product(shape) * dtype.bits / 8; }

void Results::add_array(const char* name, native::Owner owner, void* data, DType dtype, Shape shape) {
    results_.push_back({name, std::move(owner), data, dtype, std::move(shape), nullptr, 0});
}

void Results::add_block(const char* name, std::shared_ptr<std::byte[]> block, size_t begin, DType dtype, Shape shape) {
    results_.push_back({name, nullptr, nullptr, dtype, std::move(shape), std::move(block), begin});
}

void Results::status(const native::Array<int32_t>& status) { status_ = status; }

void Results::status_read(std::span<const int32_t> status) {
    const auto first = std::find_if(status.begin(), status.end(), [](int32_t one) { return one < 0; });
    if (first == status.end() || faulty_ >= 0) return;
    faulty_ = first - status.begin(), fault_ = *first;
}

void Results::read() {
    native::Queue& queue = call_.queue();
    if (queue.fixed()) {
        if (status_ && call_.place().run != nullptr) call_.place().run->statuses.push_back(status_);
        return;
    }
    if (on_device_) {
        if (status_.size() != 0) status_read(queue.read(status_));
        return;
    }
    std::vector<const void*> from;
    std::vector<size_t> nbytes, begins;
    std::vector<const native::Owner*> owners;
    for (const Result& result : results_) {
        if (result.block != nullptr) continue;
        from.push_back(result.data), nbytes.push_back(result.nbytes()), owners.push_back(&result.owner);
    }
    if (status_.size() != 0) {
        from.push_back(status_.data()), nbytes.push_back(status_.nbytes()), owners.push_back(&status_.owner());
    }
    if (from.empty()) return;
    begins.resize(from.size());
    const std::shared_ptr<std::byte[]> block = queue.read_pinned(from, nbytes, begins, owners);
    size_t at = 0;
    for (Result& result : results_)
        if (result.block == nullptr) result.block = block, result.begin = begins[at++];
    if (status_.size() != 0) status_read({reinterpret_cast<const int32_t*>(block.get() + begins[at]), status_.size()});
}

nb::dict Results::dict() {
    if (faulty_ >= 0) raise_query_fault(fault_, faulty_);
    nb::dict made;
    const std::byte* last = nullptr;  // results are mostly in one block
    nb::object block;
    for (Result& result : results_) {
        nb::object array;
        if (result.block != nullptr) {
            if (result.block.get() != last) {
                last = result.block.get();
                size_t size = 0;
                for (const Result& other : results_)
                    if (other.block == result.block) size = std::max(size, other.begin + other.nbytes());
                block = block_object(result.block, size);
            }
            array = pinned_array(block, result.begin, result.shape, result.dtype);
        } else {
            array = nb::cast(DeviceArray{call_.place().device, std::move(result.owner), result.data,
                                         std::move(result.shape), result.dtype, call_.place().stream});
        }
        made[result.name] = array;
    }
    return made;
}

const Binding binding("device", [](Module& m) {
    nb::class_<PinnedBlock>(m, "PinnedBlock", nb::type_slots(block_slots), "Pinned host memory behind NumPy arrays.");
    nb::class_<DeviceQueue>(m, "DeviceQueue", "Where a call is queued on a device.")
        .def_prop_ro("stream",
                     [](const DeviceQueue& queue) { return reinterpret_cast<uint64_t>(queue.stream.handle); });
    m.def(
        "use_faults",
        [](nb::object raise) {
            raise_fault = raise.release().ptr();
            NumPy::get();  // here, where an import holds off other threads, not in the first of several calls
        },
        nb::arg("raise_fault"), "Take the function that raises the error of a query, by its status and row.");
});
