// Kernels of PPR, which are compiled for blocks of 4, 8, 16 and 32 lanes.
#pragma once

#include <array>
#include <bit>

#include "kernel.h"

namespace hopfuse::device {

constexpr std::array<int, 4> LANES = {4, 8, 16, 32};

template <class Function>
struct LaneKernels {
    std::array<KernelOf<Function>, LANES.size()> kernels;

    const KernelOf<Function>& of(int lanes) const { return kernels[std::bit_width(static_cast<unsigned>(lanes)) - 3]; }
};

// constexpr auto mask = lane_kernels<MaskKernel>("ppr_restart_f32", HOPFUSE_LANE_NAMES("ppr_mask"));
#define HOPFUSE_LANE_NAMES(name) std::array<std::string_view, 4>{name "_l4", name "_l8", name "_l16", name "_l32"}

template <class Function>
constexpr LaneKernels<Function> lane_kernels(std::string_view unit, const std::array<std::string_view, 4>& names) {
    return {{KernelOf<Function>{{unit, names[0]}}, KernelOf<Function>{{unit, names[1]}},
             KernelOf<Function>{{unit, names[2]}}, KernelOf<Function>{{unit, names[3]}}}};
}

}  // namespace hopfuse::device
