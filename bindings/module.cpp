#include <atomic>
#include <string>
#include <vector>

#include "../kernels/cpu/threads.h"
#include "../kernels/cpu/workspace.h"
#include "common.h"

namespace {

std::atomic<const hopfuse::CpuKernels*> chosen{nullptr};

std::vector<std::string> runnable_isas() {
    std::vector<std::string> names;
    for (const hopfuse::CpuKernels* const* k = hopfuse::runnable_kernels(); *k != nullptr; ++k)
        names.push_back((*k)->isa);
    return names;
}

std::vector<std::string> built_isas() {
    std::vector<std::string> names;
    for (const char* const* name = hopfuse::built_isas(); *name != nullptr; ++name) names.push_back(*name);
    return names;
}

bool use_isa(const std::string& isa) {
    for (const hopfuse::CpuKernels* const* k = hopfuse::runnable_kernels(); *k != nullptr; ++k)
        if (isa == (*k)->isa) {
            chosen = *k;
            return true;
        }
    return false;
}

}  // namespace

const hopfuse::CpuKernels& kernels() { return *chosen.load(); }

NB_MODULE(_native, m) {
    m.doc() = "CPU kernels: arrays in, arrays out. Used by hopfuse.backends only.";
    chosen = hopfuse::runnable_kernels()[0];
    m.def("built_isas", &built_isas, "Variants in this build, best first.");
    m.def("runnable_isas", &runnable_isas, "Variants that this machine can run, best first.");
    m.def("isa", [] { return std::string(kernels().isa); }, "The variant that calls use.");
    m.def("use_isa", &use_isa, nb::arg("isa"), "Choose the variant; False where it cannot run here.");
    m.def("idle_workspace_bytes", &hopfuse::idle_workspace_bytes, "Bytes held for reuse by later calls.");
    m.def("pool_size", &hopfuse::pool_size, "Threads that the pool has started in this process.");
    m.def("release_workspaces", &hopfuse::release_workspaces, "Give the idle workspaces back to the system.");
    bind_inputs(m);
    bind_ppr(m);
    bind_dense(m);
    bind_fuse(m);
    bind_ising(m);
    bind_dice(m);
    bind_project(m);
}
