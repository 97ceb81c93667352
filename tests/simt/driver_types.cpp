// Compares the declarations of kernels/device/driver_types.h, and the entry points of the emulated driver, with NVIDIA's cuda.h.
// It only has to compile. test_driver_types.py writes the last lines: VALUE(...) of each constant and CALL(...) of each entry
// point that this cuda.h has.
#define __CUDA_API_VERSION_INTERNAL  // older versions of functions by their own names
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "abi.h"
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
