// What stops a call: signals on Python's main thread, and tokens that another thread cancels.
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <new>

#include "../kernels/cpu/threads.h"
#include "common.h"

namespace {

constexpr int64_t POLL_INTERVAL = 40'000'000;  // nanoseconds between looks at signals

std::atomic<pthread_t> main_thread;  // Python's; in a forked child, the thread that forked

// A clock that takes a few nanoseconds to read, exact to some milliseconds.
int64_t coarse_time() {
    timespec time{};
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
#else
    clock_gettime(CLOCK_MONOTONIC, &time);
#endif
    return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// The native part of hopfuse.CancelToken.
struct Token {
    int32_t cancelled = 0;

    void cancel() { __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED); }
    bool is_cancelled() const { return __atomic_load_n(&cancelled, __ATOMIC_RELAXED) != 0; }
};

// A token in use, and the scope around it. Both are kept alive by whoever holds this.
struct Scope {
    hopfuse::StopFlag flag;
    nb::object token, outer;

    Scope(nb::object given, nb::object around) : token(std::move(given)), outer(std::move(around)) {
        const Scope* further = outer.is_none() ? nullptr : nb::cast<const Scope*>(outer);
        flag = {&nb::cast<const Token*>(token)->cancelled, further == nullptr ? nullptr : &further->flag, nullptr};
    }
};

// Given by hopfuse.backends.cancellation when it is imported: returns the scope of the current context, or None; and raises
// the exception of a cancelled call. Never freed.
PyObject *current_scope = nullptr, *raise_cancelled = nullptr;

void use_scopes(nb::object current, nb::object raise) {
    current_scope = current.release().ptr(), raise_cancelled = raise.release().ptr();
}

}  // namespace

Call::Call(hopfuse::Execution& execution, bool keeps_gil) : StopFlag{&own_, nullptr, nullptr}, keeps_gil_(keeps_gil) {
    hopfuse::ready_to_throw();
    if (pthread_equal(pthread_self(), main_thread.load(std::memory_order_relaxed))) {
        poll = &poll_signals;
        next_poll_ = coarse_time() + POLL_INTERVAL;
    }
    if (current_scope != nullptr) {
        scope_ = nb::steal(PyObject_CallNoArgs(current_scope));
        if (!scope_.is_valid()) throw nb::python_error();
        if (!scope_.is_none()) further = &nb::cast<const Scope*>(scope_)->flag;
        for (const StopFlag* flag = further; flag != nullptr; flag = flag->further)
            if (__atomic_load_n(flag->raised, __ATOMIC_RELAXED) != 0) raise_unless_ok(hopfuse::Status::stopped);
    }
    execution.stop = this;
}

// Runs the handlers of signals that have arrived; an exception of one of them stops the call and stays set.
void Call::poll_signals(hopfuse::StopFlag* flag) {
    if (!pthread_equal(pthread_self(), main_thread.load(std::memory_order_relaxed))) return;
    Call& call = *static_cast<Call*>(flag);
    const int64_t now = coarse_time();
    if (now < call.next_poll_ || call.own_ != 0) return;
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) __atomic_store_n(&call.own_, 1, __ATOMIC_RELAXED);
    call.next_poll_ = coarse_time() + POLL_INTERVAL;
}

void Call::raise_unless_ok(hopfuse::Status status) const {
    if (own_ != 0) throw nb::python_error();  // whatever the status: the exception is set
    switch (status) {
        case hopfuse::Status::ok: return;
        case hopfuse::Status::out_of_memory: throw std::bad_alloc();
        case hopfuse::Status::bad_argument: throw std::invalid_argument("a kernel's contract was broken by its caller");
        case hopfuse::Status::stopped: raise_stopped();
    }
}

void Call::raise_stopped() const {
    if (own_ != 0) throw nb::python_error();
    nb::steal(PyObject_CallNoArgs(raise_cancelled));
    throw nb::python_error();
}

const Binding cancel_binding("cancel", [](Module& m) {
    const nb::object threading = nb::module_::import_("threading");
    main_thread = (pthread_t)nb::cast<uint64_t>(threading.attr("main_thread")().attr("ident"));
    pthread_atfork(nullptr, nullptr, [] { main_thread = pthread_self(); });
    nb::class_<Token>(m, "Token", "The native part of hopfuse.CancelToken.")
        .def(nb::init<>())
        .def("cancel", &Token::cancel)
        .def("is_cancelled", &Token::is_cancelled);
    nb::class_<Scope>(m, "Scope", "A token in use, inside another scope or None.")
        .def(nb::init<nb::object, nb::object>(), nb::arg("token"), nb::arg("outer").none());
    m.def("use_scopes", &use_scopes, nb::arg("current"), nb::arg("raise_cancelled"),
          "Take the function that returns the scope of a context, and the one that raises if a call is cancelled.");
    m.def(
        "check_cancelled",
        [] {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            hopfuse::Execution execution{1};
            const Call call(execution);
        },
        "Raise for a signal, or if a token of the current context is cancelled.");
});
