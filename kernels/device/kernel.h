// A kernel's name with the types of its arguments, so that a launch with others does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hopfuse::device {

// A kernel of kernels/cuda/<unit>.cu.
template <class... Parameters>
struct Kernel {
    static_assert(sizeof...(Parameters) <= 12, "more arguments belong in a struct");
    std::string_view unit, name;
};

// The kernel of a function type of kernels/cuda/arguments/*.h, which the .cu file asserts to be its own function's:
// constexpr KernelOf<CalibrateKernel> calibrate{{"fuse_f32", "calibrate_f32"}};
template <class Function>
struct KernelOf;

template <class... Parameters>
struct KernelOf<void(Parameters...)> : Kernel<Parameters...> {};

// The shape of a launch.
struct Grid {
    int64_t blocks;
    int threads;
    size_t shared = 0;         // bytes of dynamic shared memory
    bool cooperative = false;  // whether all blocks run at once and may wait for each other
};

// A number of 32 bits, as kernels take some sizes; throws std::overflow_error if it is larger.
inline int32_t to_int32(int64_t number) {
    if (number > std::numeric_limits<int32_t>::max())
        throw std::overflow_error("a kernel takes a size below 2^31, got " + std::to_string(number));
    return static_cast<int32_t>(number);
}

// The number of blocks that cover `items`, at least one.
constexpr int64_t blocks(int64_t items, int64_t per_block) {
    return items > per_block ? (items + per_block - 1) / per_block : 1;
}

}  // namespace hopfuse::device
