// Devices and their primary contexts.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "arena.h"
#include "memory.h"
#include "queue.h"

namespace simt::driver {

namespace {

bool is_device(CUdevice device) { return device >= 0 && device < machine.visible; }
Device& device_of(CUdevice number) { return machine.devices[static_cast<size_t>(number)]; }

// Bytes of shared memory that a block may ask for, and that a multiprocessor has.
std::pair<int, int> shared_memory(int capability) {
    switch (capability) {
        case 75: return {64, 64};
        case 80:
        case 87: return {163, 164};
        case 86:
        case 89:
        case 120:
        case 121: return {99, 100};
        default: return {227, 228};
    }
}

void destroy(const std::shared_ptr<Context>& context) {
    wait_for_context(*context);
    Device& device = machine.devices[static_cast<size_t>(context->device)];
    free_all(*context);
    for (const QueuePtr& queue : context->queues) forget_work(*queue);
    context->is_destroyed = true;
    std::erase_if(machine.objects,
                  [&](const auto& entry) { return entry.second->context == context.get() || entry.second == context; });
    if (device.primary == context) device.primary.reset();
}

CUcontext handle_of(const std::shared_ptr<Context>& context) {
    return context == nullptr ? nullptr : as_handle<CUcontext>(context->handle);
}

CUresult context_of(std::shared_ptr<Context>& out, CUcontext handle) {
    out = nullptr;
    if (handle == nullptr) return CUDA_SUCCESS;
    out = find_object<Context>(handle, Kind::context);
    return out == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

}  // namespace

int opt_in_shared(int capability) { return shared_memory(capability).first * 1024; }

void destroy_contexts() {
    for (Device& device : machine.devices)
        if (device.primary != nullptr) {
            const auto context = device.primary;
            destroy(context);
        }
}

extern "C" {

CUresult cuInit(unsigned flags) {
    SIMT_BEGIN(cuInit, Needs::nothing);
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (machine.visible == 0) return CUDA_ERROR_NO_DEVICE;
    if (!map_arena()) return refuse(CUDA_ERROR_OPERATING_SYSTEM, "arena", "the addresses of device memory are in use");
    machine.is_initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
    SIMT_BEGIN(cuDriverGetVersion, Needs::nothing);
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = machine.driver_version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    SIMT_BEGIN(cuDeviceGetCount, Needs::initialised);
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = machine.visible;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    SIMT_BEGIN(cuDeviceGet, Needs::initialised);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
    SIMT_BEGIN(cuDeviceGetName, Needs::initialised);
    if (name == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, static_cast<size_t>(size), "%s", device_of(device).name.c_str());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    SIMT_BEGIN(cuDeviceGetUuid_v2, Needs::initialised);
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "simt-device-0000", sizeof uuid->bytes);
    uuid->bytes[15] = static_cast<char>('0' + device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice number) {
    SIMT_BEGIN(cuDeviceGetAttribute, Needs::initialised);
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(number)) return CUDA_ERROR_INVALID_DEVICE;
    const Device& device = device_of(number);
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 * 1024; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = device.clock; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = device.multiprocessors; break;
        case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *value = device.compute_mode; break;
        case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: *value = device.ecc; break;
        case CU_DEVICE_ATTRIBUTE_TCC_DRIVER: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = device.memory_clock; break;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = device.bus_width; break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            *value = static_cast<int>(std::min<int64_t>(device.l2_bytes, 2147483647));
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 1; break;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = device.capability / 10; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = device.capability % 10; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            *value = shared_memory(device.capability).second * 1024;
            break;
        case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: *value = device.cooperative; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = opt_in_shared(device.capability); break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = device.pools; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    SIMT_BEGIN(cuDeviceTotalMem_v2, Needs::initialised);
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = device_of(device).memory;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    SIMT_BEGIN(cuDevicePrimaryCtxRetain, Needs::initialised);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto& primary = device_of(device).primary;
    if (primary == nullptr) {
        primary = std::make_shared<Context>();
        primary->device = device;
        register_object(primary, nullptr);
    }
    ++primary->retained;
    *out = handle_of(primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    SIMT_BEGIN(cuDevicePrimaryCtxRelease_v2, Needs::initialised);
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const std::shared_ptr<Context> primary = device_of(device).primary;
    if (primary == nullptr) return refuse(CUDA_ERROR_INVALID_CONTEXT, "context", "released more often than retained");
    if (--primary->retained == 0) destroy(primary);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    SIMT_BEGIN(cuCtxPushCurrent_v2, Needs::initialised);
    std::shared_ptr<Context> found;
    SIMT_TRY(context_of(found, handle));
    if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    this_thread().current.push_back(found);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    SIMT_BEGIN(cuCtxPopCurrent_v2, Needs::initialised);
    auto& current = this_thread().current;
    if (current.empty()) return refuse(CUDA_ERROR_INVALID_CONTEXT, "context", "popped more often than pushed");
    if (out != nullptr) *out = handle_of(current.back());
    current.pop_back();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    SIMT_BEGIN(cuCtxSetCurrent, Needs::initialised);
    std::shared_ptr<Context> found;
    SIMT_TRY(context_of(found, handle));
    auto& current = this_thread().current;
    if (!current.empty()) current.pop_back();
    if (found != nullptr) current.push_back(found);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
    SIMT_BEGIN(cuCtxGetCurrent, Needs::initialised);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& current = this_thread().current;
    *out = current.empty() ? nullptr : handle_of(current.back());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    SIMT_BEGIN(cuCtxGetDevice, Needs::context_even_if_failed);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}
}

}  // namespace simt::driver
