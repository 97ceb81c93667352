// Compares the declarations of kernels/device/driver_types.h, and the entry points of the emulated driver, with NVIDIA's cuda.h.
// It only has to compile. test_driver_types.py writes the last lines: VALUE(...) of each constant and CALL(...) of each entry
// point that this cuda.h has.
#define __CUDA_API_VERSION_INTERNAL  // older versions of functions by their own names
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include <type_traits>

namespace abi {

// What calls have in common in both: a handle is a pointer to something that is never defined, an enumeration an integer.
template <class Ours, class Theirs>
constexpr bool is_same_type() {
    if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        using A = std::remove_pointer_t<Ours>;
        using B = std::remove_pointer_t<Theirs>;
        if constexpr (std::is_const_v<A> != std::is_const_v<B>) return false;
        else return is_same_type<std::remove_cv_t<A>, std::remove_cv_t<B>>();
    } else if constexpr (std::is_enum_v<Ours> && std::is_enum_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) &&
               std::is_unsigned_v<std::underlying_type_t<Ours>> == std::is_unsigned_v<std::underlying_type_t<Theirs>>;
    } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
        return true;  // handles by their place, structs below
    } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) && std::is_unsigned_v<Ours> == std::is_unsigned_v<Theirs>;
    } else {
        return std::is_same_v<Ours, Theirs>;
    }
}

template <class Ours, class Theirs>
struct Same;
template <class R, class... A, class S, class... B>
struct Same<R(A...), S(B...)> {
    static constexpr bool value = [] {
        if constexpr (sizeof...(A) != sizeof...(B)) return false;
        else return is_same_type<R, S>() && (is_same_type<A, B>() && ...);
    }();
};

}  // namespace abi

#include "driver_types.h"

#include "entry_points.h"

namespace ours = hopfuse::driver;

#define VALUE(name) static_assert(static_cast<long long>(ours::name) == static_cast<long long>(::name), #name)

static_assert(ours::host_alloc_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::host_alloc_devicemap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(ours::host_alloc_writecombined == CU_MEMHOSTALLOC_WRITECOMBINED);
static_assert(sizeof(ours::CUuuid) == sizeof(::CUuuid));
static_assert(sizeof(ours::CUdeviceptr) == sizeof(::CUdeviceptr));
static_assert(sizeof(ours::CUmemPoolProps) == sizeof(::CUmemPoolProps));
static_assert(offsetof(ours::CUmemPoolProps, location) == offsetof(::CUmemPoolProps, location));
static_assert(offsetof(ours::CUmemPoolProps, maxSize) == offsetof(::CUmemPoolProps, maxSize));
static_assert(offsetof(ours::CUmemPoolProps, reserved) == offsetof(::CUmemPoolProps, reserved));
static_assert(offsetof(ours::CUmemLocation, id) == offsetof(::CUmemLocation, id));

// The entry points of the library, in a namespace of their own, against the functions of that name.
namespace hopfuse::driver::declared {
#define ENTRY(name, asked, since, parameters) using name = CUresult parameters;
SIMT_ENTRY_POINTS(ENTRY)
#undef ENTRY
}  // namespace hopfuse::driver::declared

#define CALL(name) static_assert(abi::Same<ours::declared::name, decltype(::name)>::value, #name)

bool streams_are_theirs() {
    return static_cast<void*>(ours::legacy_stream()) == static_cast<void*>(CU_STREAM_LEGACY) &&
           static_cast<void*>(ours::per_thread_stream()) == static_cast<void*>(CU_STREAM_PER_THREAD);
}
