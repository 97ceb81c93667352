// A driver on which nothing runs.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "driver.h"

namespace hopfuse::device {
namespace {

std::atomic<CUdeviceptr> next_address{CUdeviceptr{1} << 40};

CUdeviceptr take_address(size_t bytes) {
    return next_address.fetch_add((bytes + 511) / 512 * 512, std::memory_order_relaxed);
}

template <class Handle>
Handle some_handle() {
    return reinterpret_cast<Handle>(static_cast<uintptr_t>(take_address(1)));
}

template <class... P>
CUresult nothing(P...) {
    return CUDA_SUCCESS;
}

template <class Handle, class... P>
CUresult make(Handle* made, P...) {
    *made = some_handle<Handle>();
    return CUDA_SUCCESS;
}

CUresult attribute_of(int* value, CUdevice_attribute attribute, CUdevice) {
    // Those of an H200, so that the host's work is that of a large device.
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 60 << 20; break;
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
        default: *value = 0;
    }
    return CUDA_SUCCESS;
}

Driver make_driver() {
    Driver made;
#define HOPFUSE_NOTHING(name, parameters) made.name = nothing;
    HOPFUSE_DRIVER_ENTRY_POINTS(HOPFUSE_NOTHING)
#undef HOPFUSE_NOTHING
    made.version = OLDEST_DRIVER;
    made.library = "none";
    made.cuDriverGetVersion = [](int* version) { return *version = OLDEST_DRIVER, CUDA_SUCCESS; };
    made.cuGetErrorName =
        made.cuGetErrorString = [](CUresult, const char** text) { return *text = "no error", CUDA_SUCCESS; };
    made.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
    made.cuDeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
    made.cuDeviceGetName = [](char* name, int size, CUdevice) {
        std::strncpy(name, "none", static_cast<size_t>(size));
        return CUDA_SUCCESS;
    };
    made.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) { return std::memset(uuid, 0, sizeof *uuid), CUDA_SUCCESS; };
    made.cuDeviceGetAttribute = attribute_of;
    made.cuDeviceTotalMem = [](size_t* bytes, CUdevice) { return *bytes = size_t{1} << 62, CUDA_SUCCESS; };
    made.cuDevicePrimaryCtxRetain = make;
    made.cuCtxPopCurrent = made.cuCtxGetCurrent = [](CUcontext* context) { return *context = nullptr, CUDA_SUCCESS; };
    made.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
    made.cuMemGetInfo = [](size_t* free_bytes, size_t* total_bytes) {
        return *free_bytes = *total_bytes = size_t{1} << 62, CUDA_SUCCESS;
    };
    made.cuMemAlloc = [](CUdeviceptr* pointer, size_t bytes) { return *pointer = take_address(bytes), CUDA_SUCCESS; };
    made.cuMemPoolCreate = make;
    made.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute, void* value) {
        const uint64_t none = 0;
        return std::memcpy(value, &none, sizeof none), CUDA_SUCCESS;
    };
    made.cuMemAllocFromPoolAsync = [](CUdeviceptr* pointer, size_t bytes, CUmemoryPool, CUstream) {
        return *pointer = take_address(bytes), CUDA_SUCCESS;
    };
    made.cuMemHostAlloc = [](void** pointer, size_t bytes, unsigned) {
        *pointer = std::malloc(bytes);
        return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    };
    made.cuMemFreeHost = [](void* pointer) { return std::free(pointer), CUDA_SUCCESS; };
    made.cuStreamCreate = make;
    made.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
        return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
    };
    made.cuStreamEndCapture = [](CUstream, CUgraph* graph) { return *graph = some_handle<CUgraph>(), CUDA_SUCCESS; };
    made.cuEventCreate = make;
    made.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) { return *milliseconds = 0, CUDA_SUCCESS; };
    made.cuGraphInstantiateWithFlags = make;
    made.cuModuleLoadData = make;
    made.cuModuleGetFunction = make;
    made.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) { return *value = 0, CUDA_SUCCESS; };
    made.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
        return *blocks = 2, CUDA_SUCCESS;
    };
    return made;
}

}  // namespace

const Driver& counting_driver() {
    static const Driver& made = *new Driver(make_driver());
    return made;
}

}  // namespace hopfuse::device
