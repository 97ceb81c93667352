// Where calls of this thread are queued, and small helpers of the classes that Python sees.
#pragma once

#include <nanobind/stl/shared_ptr.h>

#include "device.h"

// The innermost recording or stream that this thread is in on the device; else a stream of the call's own.
DeviceQueue queue_of_thread(const std::shared_ptr<native::Device>& device);
// Until leave_queue(), calls of this thread on the device are queued there.
void enter_queue(DeviceQueue queue);
void leave_queue();

// Whether this thread is in a recording on the device.
bool is_recording(const native::Device& device);

// A NumPy array over a part of a block of memory, an object that it keeps alive.
nb::object pinned_array(const nb::object& block, size_t begin, const Shape& shape, DType dtype);
nb::object block_object(std::shared_ptr<std::byte[]> block, size_t size);
// The dtype of NumPy, and the other way round.
nb::object numpy_dtype(DType dtype);
DType dtype_from(nb::handle dtype);

[[noreturn]] void raise_query_fault(int32_t fault, int64_t row);

// Keeps an object of Python alive; null for None.
native::Owner python_owner(nb::object object);
nb::object as_tuple(const Shape& shape);
