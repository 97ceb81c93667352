// The entry points of the CUDA driver that are used here. The library is opened at the first use; nothing is linked.
#pragma once

#include "driver_types.h"
#include "error.h"

namespace hopfuse::device {

using namespace hopfuse::driver;

// The oldest driver: of CUDA 12.0 (Linux 525.60.13, Windows 527.41). Entry points are those of this version, so a newer driver
// behaves alike.
constexpr int OLDEST_DRIVER = 12000;

// X(name, parameters): a member of Driver, and what cuGetProcAddress is asked for.
// clang-format off
#define HOPFUSE_DRIVER_ENTRY_POINTS(X)                                                                                        \
    X(cuInit, (unsigned flags))                                                                                               \
    X(cuDriverGetVersion, (int* version))                                                                                     \
    X(cuGetErrorName, (CUresult error, const char** text))                                                                    \
    X(cuGetErrorString, (CUresult error, const char** text))                                                                  \
    X(cuDeviceGetCount, (int* count))                                                                                         \
    X(cuDeviceGet, (CUdevice* device, int ordinal))                                                                           \
    X(cuDeviceGetName, (char* name, int size, CUdevice device))                                                               \
    X(cuDeviceGetUuid, (CUuuid* uuid, CUdevice device))                                                                       \
    X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))                                      \
    X(cuDeviceTotalMem, (size_t* bytes, CUdevice device))                                                                     \
    X(cuDevicePrimaryCtxRetain, (CUcontext* context, CUdevice device))                                                        \
    X(cuDevicePrimaryCtxRelease, (CUdevice device))                                                                           \
    X(cuCtxPushCurrent, (CUcontext context))                                                                                  \
    X(cuCtxPopCurrent, (CUcontext* context))                                                                                  \
    X(cuCtxGetCurrent, (CUcontext* context))                                                                                  \
    X(cuCtxGetDevice, (CUdevice* device))                                                                                     \
    X(cuCtxSynchronize, ())                                                                                                   \
    X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode* mode))                                                         \
    X(cuMemGetInfo, (size_t* free_bytes, size_t* total_bytes))                                                                \
    X(cuMemAlloc, (CUdeviceptr* pointer, size_t bytes))                                                                       \
    X(cuMemFree, (CUdeviceptr pointer))                                                                                       \
    X(cuMemPoolCreate, (CUmemoryPool* pool, const CUmemPoolProps* properties))                                                \
    X(cuMemPoolDestroy, (CUmemoryPool pool))                                                                                  \
    X(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                                 \
    X(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                                 \
    X(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep))                                                                      \
    X(cuMemAllocFromPoolAsync, (CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream))                      \
    X(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))                                                                 \
    X(cuMemHostAlloc, (void** pointer, size_t bytes, unsigned flags))                                                         \
    X(cuMemFreeHost, (void* pointer))                                                                                         \
    X(cuPointerGetAttributes, (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer))          \
    X(cuMemcpyHtoDAsync, (CUdeviceptr target, const void* source, size_t bytes, CUstream stream))                             \
    X(cuMemcpyDtoHAsync, (void* target, CUdeviceptr source, size_t bytes, CUstream stream))                                   \
    X(cuMemcpyDtoDAsync, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream))                             \
    X(cuMemsetD8Async, (CUdeviceptr target, unsigned char value, size_t count, CUstream stream))                              \
    X(cuStreamCreate, (CUstream* stream, unsigned flags))                                                                     \
    X(cuStreamDestroy, (CUstream stream))                                                                                     \
    X(cuStreamSynchronize, (CUstream stream))                                                                                 \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                                    \
    X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status))                                                  \
    X(cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode))                                                      \
    X(cuStreamEndCapture, (CUstream stream, CUgraph* graph))                                                                  \
    X(cuEventCreate, (CUevent* event, unsigned flags))                                                                        \
    X(cuEventDestroy, (CUevent event))                                                                                        \
    X(cuEventRecord, (CUevent event, CUstream stream))                                                                        \
    X(cuEventSynchronize, (CUevent event))                                                                                    \
    X(cuEventQuery, (CUevent event))                                                                                          \
    X(cuEventElapsedTime, (float* milliseconds, CUevent begin, CUevent end))                                                  \
    X(cuGraphInstantiateWithFlags, (CUgraphExec* exec, CUgraph graph, unsigned long long flags))                              \
    X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                                     \
    X(cuGraphDestroy, (CUgraph graph))                                                                                        \
    X(cuGraphExecDestroy, (CUgraphExec exec))                                                                                 \
    X(cuModuleLoadData, (CUmodule* module, const void* image))                                                                \
    X(cuModuleUnload, (CUmodule module))                                                                                      \
    X(cuModuleGetFunction, (CUfunction* function, CUmodule module, const char* name))                                         \
    X(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction function))                                  \
    X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                                   \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, CUfunction function, int threads, size_t dynamic_shared))    \
    X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,              \
                       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,         \
                       void** extra))                                                                                         \
    X(cuLaunchCooperativeKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
                                  unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                 \
                                  void** parameters))
// clang-format on

// The entry points of one driver.
struct Driver {
#define HOPFUSE_DRIVER_MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
    HOPFUSE_DRIVER_ENTRY_POINTS(HOPFUSE_DRIVER_MEMBER)
#undef HOPFUSE_DRIVER_MEMBER
    int version = 0;      // 12040 for CUDA 12.4
    std::string library;  // the name by which it was opened
};

// The driver of this process: the library that the environment variable HOPFUSE_LIBCUDA names, else the system's. It is opened and
// initialised once; if that fails, again only when the variable has changed. Throws NoDriver with the reason, and in a process that
// was forked from one that had opened it.
const Driver& driver();

// A driver on which nothing runs: it hands out addresses, and every call succeeds at once.
const Driver& counting_driver();

// Whether this process was forked from one that had opened the driver. CUDA does not work there, so nothing is freed either.
bool is_forked() noexcept;

// The error of a failed call. `what` names the operation in words.
[[noreturn]] void throw_error(const Driver& driver, CUresult code, const std::string& what);

// Checks the result of a call; `what` is made into words only on failure.
template <class What>
inline void check(const Driver& driver, CUresult code, const What& what) {
    if (code != CUDA_SUCCESS) [[unlikely]]
        throw_error(driver, code, what);
}

}  // namespace hopfuse::device
