// The types of kernels. A header of this folder declares the argument structs of a .cu file, plain data that the host fills, and the
// function types of its kernels; the .cu file asserts that its functions have them. It includes nothing, because NVRTC has no standard
// headers.
#pragma once

namespace hopfuse {

template <class A, class B>
constexpr bool same_type = false;
template <class A>
constexpr bool same_type<A, A> = true;

}  // namespace hopfuse

// In the .cu file, after the kernel: HOPFUSE_KERNEL_TYPE(calibrate_f32, CalibrateKernel);
#define HOPFUSE_KERNEL_TYPE(kernel, type) \
    static_assert(hopfuse::same_type<decltype(kernel), type>, #kernel " has other parameters than " #type)
