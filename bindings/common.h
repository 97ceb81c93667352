// Converts arrays to views and Status to exceptions. There is no arithmetic here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <optional>
#include <stdexcept>

#include "../kernels/cpu/kernels.h"
#include "hopfuse/status.h"

namespace nb = nanobind;

// C-contiguous host arrays, which are not converted or copied.
template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
const T* pointer(const std::optional<In<T>>& array) {
    return array.has_value() ? array->data() : nullptr;
}

inline void raise_unless_ok(hopfuse::Status status) {
    switch (status) {
        case hopfuse::Status::ok: return;
        case hopfuse::Status::out_of_memory: throw std::bad_alloc();
        case hopfuse::Status::bad_argument: throw std::invalid_argument("a kernel's contract was broken by its caller");
    }
}

// The kernels that calls use, set at import and changed by use_isa.
const hopfuse::CpuKernels& kernels();

void bind_inputs(nb::module_& m);
void bind_ppr(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_fuse(nb::module_& m);
void bind_ising(nb::module_& m);
void bind_dice(nb::module_& m);
void bind_project(nb::module_& m);
void bind_similarity(nb::module_& m);
