// What the bindings of a device's operations use: arrays, operands and results of a call on a queue.
//
//     nb::dict device_calibrate(const DeviceQueue& queue, nb::handle scores, nb::handle counts, ..., bool on_device) {
//         DeviceCall call(queue);
//         Operands in(call);
//         const auto given = in.take<float>(scores, 2);
//         const auto used = in.take<int64_t>(counts, 1);
//         Results out(call, on_device);
//         call.run([&](native::Queue& to) {
//             in.upload();
//             out.add("scores", native::calibrate(to, given, used, ...), {given.dim(0), given.dim(1)});
//             out.read();
//         });
//         return out.dict();
//     }
//
// Operands, Results and DeviceCall are made and dropped with the GIL; run() executes its body without it, so the body touches no
// Python object.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../kernels/device/device.h"
#include "common.h"

namespace native = hopfuse::device;

using DType = nb::dlpack::dtype;
using Shape = std::vector<int64_t>;

// An array in the memory of a device, C-contiguous: the package's own, or a view of a caller's. Python's hopfuse._native.DeviceArray.
struct DeviceArray {
    std::shared_ptr<native::Device> device;
    native::Owner owner;
    void* data = nullptr;
    Shape shape;
    DType dtype{};
    // Where work on it was queued last, here or by its library; nothing if no work is pending.
    std::optional<native::Stream> stream;
    bool readonly = false;
    bool borrowed = false;  // its library may reuse the memory as soon as `owner` is dropped, whatever work is pending

    size_t size() const;
    size_t nbytes() const { return size() * dtype.bits / 8; }
};

// A run of a recording, on the thread that makes it.
struct RecordingRun {
    native::Queue* queue;                            // null once the run is over
    bool records = false;                            // whether work is recorded, and not executed
    std::vector<native::Array<int32_t>> statuses{};  // (B,), of the operations in it
};

// Where a call is queued: in a recording, on the stream of the caller's arrays, or on a stream of its own. Python's
// hopfuse._native.DeviceQueue, which Device.queue() makes for a call.
struct DeviceQueue {
    std::shared_ptr<native::Device> device;
    native::Stream stream;
    std::shared_ptr<RecordingRun> run;  // or null
};

// A call on a queue. It can be cancelled at each launch, by a token of the caller's context or by a signal.
class DeviceCall {
public:
    explicit DeviceCall(const DeviceQueue& queue);
    ~DeviceCall();
    DeviceCall(const DeviceCall&) = delete;
    DeviceCall& operator=(const DeviceCall&) = delete;

    native::Queue& queue() { return *queue_; }
    const DeviceQueue& place() const { return place_; }

    // body(native::Queue&), without the GIL.
    template <class Body>
    void run(const Body& body) {
        try {
            const nb::gil_scoped_release release;
            try {
                body(*queue_);
            } catch (...) {
                order_after_failure();
                throw;
            }
            order_after();
        } catch (const native::Cancelled&) {
            raise_cancelled();
        }
    }

    // Waits, on the device, for what is pending on an array of another stream, and lets that stream wait for this call. A recording
    // keeps the array instead, and waits before it.
    void order(const DeviceArray& array);

private:
    DeviceQueue place_;
    hopfuse::Execution execution_{1};
    Call stop_;
    std::optional<native::Queue> own_;
    native::Queue* queue_;
    std::vector<native::Stream> others_;
    std::vector<native::Owner> borrowed_;

    static void checkpoint(void* context);
    void order_after();
    void order_after_failure() noexcept;  // what is queued still reads the caller's arrays
    [[noreturn]] void raise_cancelled() const { stop_.raise_stopped(); }
};

class Operands;

// An operand of a call: an array on the device, once Operands::upload() has run. None of Python is a null pointer.
template <class T>
class Operand {
public:
    native::Array<T> array() const;
    operator native::Array<T>() const { return array(); }
    // What Python gave: None, or an array of this shape.
    bool is_none() const;
    bool on_device() const;
    size_t rank() const;
    int64_t dim(size_t axis) const;
    size_t size() const;
    size_t itemsize() const;
    const Shape& shape() const;
    DType dtype() const;
    // The elements on the host; empty if the array is on a device.
    std::span<const T> host() const;

private:
    Operand(Operands* of, size_t at) : of_(of), at_(at) {}
    Operands* of_;
    size_t at_;
    friend class Operands;
};

// An array that a call writes to: the caller's, on the host or on the device.
template <class T>
struct Target {
    native::Array<T> there;  // null if it is on the host
    std::span<T> host;
    Shape shape;
};

// The array operands of a call: DeviceArray objects, or C-contiguous arrays of the host, which are uploaded in one copy.
class Operands {
public:
    static constexpr int ANY_RANK = -1;

    explicit Operands(DeviceCall& call) : call_(call) { slots_.reserve(16); }
    ~Operands();
    Operands(const Operands&) = delete;
    Operands& operator=(const Operands&) = delete;

    // An array of elements of this type; uint8_t also takes bools. With T = std::byte, an array of any type.
    template <class T>
    Operand<T> take(nb::handle given, int rank = ANY_RANK) {
        return Operand<T>(this, add(given, type_of<T>(), rank, false));
    }
    // The same, or None.
    template <class T>
    Operand<T> maybe(nb::handle given, int rank = ANY_RANK) {
        if (given.is_none()) return Operand<T>(this, add_none());
        return take<T>(given, rank);
    }
    // An array of the host that is not uploaded: the launcher reads it there.
    template <class T>
    std::span<const T> host(nb::handle given, int rank = ANY_RANK) {
        const size_t at = add(given, type_of<T>(), rank, true);
        return {static_cast<const T*>(slots_[at].view.buf), slots_[at].size};
    }
    template <class T>
    Target<T> target(nb::handle given, int rank = ANY_RANK) {
        const size_t at = add_target(given, type_of<T>(), rank);
        const Slot& slot = slots_[at];
        if (slot.is_there) return {native::Array<T>(slot.owner, static_cast<T*>(slot.data), slot.size), {}, slot.shape};
        return {{}, {static_cast<T*>(slot.view.buf), slot.size}, slot.shape};
    }

    // Uploads what is on the host; in the body of DeviceCall::run.
    void upload();

private:
    struct Slot {
        Shape shape;
        DType dtype{};
        size_t size = 0, itemsize = 1;
        bool is_none = false, is_there = false,
             stays = false;  // on the device already; on the host, not to be uploaded
        Py_buffer view{};    // of the host; obj is null if it is on the device
        native::Owner owner;
        void* data = nullptr;
    };

    template <class T>
    static DType type_of() {
        if constexpr (std::is_same_v<T, std::byte>) return DType{};
        else return nb::dtype<T>();
    }
    size_t add(nb::handle given, DType type, int rank, bool stays);
    size_t add_target(nb::handle given, DType type, int rank);
    size_t add_none();
    void add_device(const DeviceArray& array, DType type, int rank);
    void add_host(nb::handle given, DType type, int rank, int flags);

    DeviceCall& call_;
    std::vector<Slot> slots_;
    template <class T>
    friend class Operand;
};

template <class T>
native::Array<T> Operand<T>::array() const {
    const Operands::Slot& slot = of_->slots_[at_];
    const size_t count = std::is_same_v<T, std::byte> ? slot.size * slot.itemsize : slot.size;
    return native::Array<T>(slot.owner, static_cast<T*>(slot.data), count);
}
template <class T>
bool Operand<T>::is_none() const {
    return of_->slots_[at_].is_none;
}
template <class T>
bool Operand<T>::on_device() const {
    return of_->slots_[at_].is_there;
}
template <class T>
size_t Operand<T>::rank() const {
    return of_->slots_[at_].shape.size();
}
template <class T>
int64_t Operand<T>::dim(size_t axis) const {
    return of_->slots_[at_].shape.at(axis);
}
template <class T>
size_t Operand<T>::size() const {
    return of_->slots_[at_].size;
}
template <class T>
size_t Operand<T>::itemsize() const {
    return of_->slots_[at_].itemsize;
}
template <class T>
const Shape& Operand<T>::shape() const {
    return of_->slots_[at_].shape;
}
template <class T>
DType Operand<T>::dtype() const {
    return of_->slots_[at_].dtype;
}
template <class T>
std::span<const T> Operand<T>::host() const {
    const Operands::Slot& slot = of_->slots_[at_];
    if (slot.view.obj == nullptr) return {};
    return {static_cast<const T*>(slot.view.buf), std::is_same_v<T, std::byte> ? slot.size * slot.itemsize : slot.size};
}

// The results of a call: DeviceArray objects if `on_device` or in a recording, else NumPy arrays over one block of pinned memory.
class Results {
public:
    Results(DeviceCall& call, bool on_device) : call_(call), on_device_(on_device || call.queue().fixed()) {}
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;

    // Whether results stay on the device.
    bool on_device() const { return on_device_; }

    template <class T>
    void add(const char* name, const native::Array<T>& array, Shape shape) {
        add_array(name, array.owner(), array.data(), nb::dtype<T>(), std::move(shape));
    }
    // The bytes of an array as they are.
    void add_bytes(const char* name, const DeviceArray& array) {
        add_array(name, array.owner, array.data, array.dtype, array.shape);
    }
    // A result that has been read by Queue::read_pinned already: `begin` bytes into its block.
    template <class T>
    void add_read(const char* name, std::shared_ptr<std::byte[]> block, size_t begin, Shape shape) {
        add_block(name, std::move(block), begin, nb::dtype<T>(), std::move(shape));
    }
    // The status of each query: dict() raises the error of the first that has one. In a recording it is the recording's.
    void status(const native::Array<int32_t>& status);
    // The same of statuses that have been read already.
    void status_read(std::span<const int32_t> status);

    // Reads what is to be read, in one copy, waiting; in the body of DeviceCall::run, after the last add().
    void read();
    // The results by name; raises the error of a query. With the GIL, after DeviceCall::run.
    nb::dict dict();

private:
    struct Result {
        const char* name;  // a literal
        native::Owner owner;
        void* data;
        DType dtype;
        Shape shape;
        std::shared_ptr<std::byte[]> block;
        size_t begin = 0;
        size_t nbytes() const;
    };
    void add_array(const char* name, native::Owner owner, void* data, DType dtype, Shape shape);
    void add_block(const char* name, std::shared_ptr<std::byte[]> block, size_t begin, DType dtype, Shape shape);

    DeviceCall& call_;
    const bool on_device_;
    std::vector<Result> results_;
    native::Array<int32_t> status_;
    int64_t faulty_ = -1;  // the first query with a fault
    int32_t fault_ = 0;
};
