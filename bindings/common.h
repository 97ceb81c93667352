// Converts arrays to views and Status to exceptions. There is no arithmetic here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "../kernels/cpu/float_mode.h"
#include "../kernels/cpu/kernels.h"
#include "hopfuse/execution.h"
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

// The native module. Every function of it runs in the default floating-point mode, whatever that of its caller is. Arguments
// are converted in the caller's mode, so numbers that are float32 in a kernel come in as double.
class Module {
public:
    explicit Module(nb::module_& module) : module_(module) {}

    template <class Function, class... Extra>
    void def(const char* name, Function&& function, const Extra&... extra) {
        module_.def(name, std::forward<Function>(function), nb::call_guard<hopfuse::FloatMode>(), extra...);
    }

    auto attr(const char* name) { return module_.attr(name); }
    operator nb::handle() const { return module_; }

private:
    nb::module_& module_;
};

// What a file adds to the module. All are bound in the order of their names, which the stub of the module has, too:
//     const Binding NAME_binding("NAME", [](Module& m) { m.def("function", &function, …); });
class Binding {
public:
    using Bind = void (*)(Module&);
    Binding(const char* name, Bind bind) {
        if (all().emplace(name, bind).second) return;
        std::fprintf(stderr, "hopfuse: two files bind %s\n", name);
        std::abort();
    }

    static std::map<std::string_view, Bind>& all() {
        static std::map<std::string_view, Bind> bindings;
        return bindings;
    }
};

using hopfuse::CpuKernels;

// A call of a kernel, the only access to the kernels. It runs without the GIL until it ends or is stopped: by a signal, if
// the caller is Python's main thread, or by a token of the caller's context (cancel.cpp).
class Call : hopfuse::StopFlag {
public:
    // `keeps_gil`: for calls so short that releasing it would take as long.
    explicit Call(hopfuse::Execution& execution, bool keeps_gil = false);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Throws unless body(kernels) returns Status::ok.
    template <class Body>
    void run(const Body& body) {
        hopfuse::Status status;
        {
            std::optional<nb::gil_scoped_release> release;
            if (!keeps_gil_) release.emplace();
            status = body(kernels());
        }
        raise_unless_ok(status);
    }

    // Raises what has stopped the call: the exception of a signal's handler, or that of a cancelled token.
    [[noreturn]] void raise_stopped() const;

private:
    int32_t own_ = 0;  // not 0: a signal handler has raised an exception
    const bool keeps_gil_;
    int64_t next_poll_ = 0;
    nb::object scope_;

    static const CpuKernels& kernels();
    static void poll_signals(hopfuse::StopFlag* flag);
    void raise_unless_ok(hopfuse::Status status) const;
};
