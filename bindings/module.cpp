#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "../kernels/cpu/threads.h"
#include "../kernels/cpu/workspace.h"
#include "common.h"

namespace {

std::atomic<const hopfuse::CpuVariant*> chosen{nullptr};

std::vector<std::string> names(const char* const* list) {
    std::vector<std::string> found;
    for (; *list != nullptr; ++list) found.push_back(*list);
    return found;
}

std::vector<std::string> runnable_isas() {
    std::vector<std::string> found;
    for (const hopfuse::CpuVariant* const* v = hopfuse::runnable_variants(); *v != nullptr; ++v)
        found.push_back((*v)->isa);
    return found;
}

bool use_isa(const std::string& isa) {
    for (const hopfuse::CpuVariant* const* v = hopfuse::runnable_variants(); *v != nullptr; ++v)
        if (isa == (*v)->isa) {
            chosen = *v;
            return true;
        }
    return false;
}

std::string isa_of(const std::string& op) {
    const hopfuse::CpuVariant& variant = *chosen.load();
    return op.rfind("dense", 0) == 0 ? variant.isa : variant.isa_of_others;
}

// The environment that os.environ writes through to.
nb::object environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? nb::none() : nb::steal(PyUnicode_DecodeFSDefault(value));
}

}  // namespace

const CpuKernels& Call::kernels() { return *chosen.load(); }

NB_MODULE(_native, module) {
    nb::set_leak_warnings(false);  // a device is kept for the rest of the process
    module.doc() = "Kernels of the CPU and of devices: arrays in, arrays out. Used by hopfuse.backends only.";
    chosen = &hopfuse::best_variant();
    Module m(module);
    m.def("built_isas", [] { return names(hopfuse::built_isas()); }, "Variants in this build, best first.");
    m.def("runnable_isas", &runnable_isas, "Variants that this machine can run, best first.");
    m.def(
        "refused_isas", [] { return names(hopfuse::refused_isas()); },
        "Variants whose instructions this machine says it has, but which give wrong sums on it.");
    m.def("isa", [] { return std::string(chosen.load()->isa); }, "The variant that calls use.");
    m.def("isa_of", &isa_of, nb::arg("op"), "The instruction set that the chosen variant runs an operation on.");
    m.def("use_isa", &use_isa, nb::arg("isa"), "Choose the variant; False where it cannot run here.");
    m.def("environment", &environment, nb::arg("name"), nb::sig("def environment(name: str) -> str | None"),
          "A variable of the environment, or None; in a fraction of the time that os.environ takes.");
    m.def("idle_workspace_bytes", &hopfuse::idle_workspace_bytes, "Bytes held for reuse by later calls.");
    m.def("pool_size", &hopfuse::pool_size, "Threads that the pool has started in this process.");
    m.def("release_workspaces", &hopfuse::release_workspaces, "Give the idle workspaces back to the system.");
    for (const auto& [name, bind] : Binding::all()) bind(m);
}
