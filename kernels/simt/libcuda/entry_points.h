// The entry points of the driver API that this library has: the exported name, the name that cuGetProcAddress is asked for, the
// CUDA version that brought it, and its parameters, whose types are those of driver_types.h.
#pragma once

// clang-format off
#define SIMT_ENTRY_POINTS(X)                                                                                                   \
    X(cuInit, cuInit, 2000, (unsigned flags))                                                                                  \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int* version))                                                            \
    X(cuGetErrorName, cuGetErrorName, 6000, (CUresult error, const char** text))                                               \
    X(cuGetErrorString, cuGetErrorString, 6000, (CUresult error, const char** text))                                           \
    X(cuGetProcAddress, cuGetProcAddress, 11030,                                                                               \
      (const char* symbol, void** function, int version, uint64_t flags))                                                      \
    X(cuGetProcAddress_v2, cuGetProcAddress, 12000,                                                                            \
      (const char* symbol, void** function, int version, uint64_t flags, CUdriverProcAddressQueryResult* status))              \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int* count))                                                                  \
    X(cuDeviceGet, cuDeviceGet, 2000, (CUdevice* device, int ordinal))                                                         \
    X(cuDeviceGetName, cuDeviceGetName, 2000, (char* name, int size, CUdevice device))                                         \
    X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (CUuuid* uuid, CUdevice device))                                                 \
    X(cuDeviceGetUuid_v2, cuDeviceGetUuid, 11040, (CUuuid* uuid, CUdevice device))                                             \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int* value, CUdevice_attribute attribute, CUdevice device))           \
    X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, (size_t* bytes, CUdevice device))                                           \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext* context, CUdevice device))                         \
    X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, (CUdevice device))                                       \
    X(cuCtxPushCurrent_v2, cuCtxPushCurrent, 4000, (CUcontext context))                                                        \
    X(cuCtxPopCurrent_v2, cuCtxPopCurrent, 4000, (CUcontext* context))                                                         \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context))                                                             \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext* context))                                                            \
    X(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice* device))                                                                \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, ())                                                                            \
    X(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t* free_bytes, size_t* total_bytes))                                          \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, (CUdeviceptr* pointer, size_t bytes))                                                   \
    X(cuMemFree_v2, cuMemFree, 3020, (CUdeviceptr pointer))                                                                    \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool* pool, const CUmemPoolProps* properties))                         \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool))                                                          \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))    \
    X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))    \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t keep))                                               \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,                                                                 \
      (CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool, CUstream stream))                                                \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr pointer, CUstream stream))                                           \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void** pointer, size_t bytes, unsigned flags))                                    \
    X(cuMemFreeHost, cuMemFreeHost, 2000, (void* pointer))                                                                     \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000,                                                                      \
      (void* value, CUpointer_attribute attribute, CUdeviceptr pointer))                                                       \
    X(cuPointerGetAttributes, cuPointerGetAttributes, 7000,                                                                    \
      (unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr pointer))                                   \
    X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020, (CUdeviceptr target, const void* source, size_t bytes, CUstream stream))  \
    X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020, (void* target, CUdeviceptr source, size_t bytes, CUstream stream))        \
    X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020, (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream))  \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020, (CUdeviceptr target, unsigned char value, size_t count, CUstream stream))        \
    X(cuMemsetD32Async, cuMemsetD32Async, 3020, (CUdeviceptr target, unsigned value, size_t count, CUstream stream))           \
    X(cuStreamCreate, cuStreamCreate, 2000, (CUstream* stream, unsigned flags))                                                \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (CUstream* stream, unsigned flags, int priority))          \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, (CUstream stream))                                                            \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                                                       \
    X(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream))                                                                   \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags))                            \
    X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (CUstream stream, CUstreamCaptureStatus* status))                       \
    X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode))                       \
    X(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream stream, CUgraph* graph))                                        \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode* mode))                \
    X(cuEventCreate, cuEventCreate, 2000, (CUevent* event, unsigned flags))                                                    \
    X(cuEventDestroy_v2, cuEventDestroy, 4000, (CUevent event))                                                                \
    X(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream))                                                    \
    X(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event))                                                           \
    X(cuEventQuery, cuEventQuery, 2000, (CUevent event))                                                                       \
    X(cuEventElapsedTime, cuEventElapsedTime, 2000, (float* milliseconds, CUevent begin, CUevent end))                         \
    X(cuEventElapsedTime_v2, cuEventElapsedTime, 12080, (float* milliseconds, CUevent begin, CUevent end))                     \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, (CUgraphExec* exec, CUgraph graph, unsigned long long flags))    \
    X(cuGraphLaunch, cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream))                                                \
    X(cuGraphDestroy, cuGraphDestroy, 10000, (CUgraph graph))                                                                  \
    X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (CUgraphExec exec))                                                       \
    X(cuGraphGetNodes, cuGraphGetNodes, 10000, (CUgraph graph, CUgraphNode* nodes, size_t* count))                             \
    X(cuGraphNodeGetType, cuGraphNodeGetType, 10000, (CUgraphNode node, CUgraphNodeType* type))                                \
    X(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule* module, const void* image))                                         \
    X(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module))                                                                 \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction* function, CUmodule module, const char* name))               \
    X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value))          \
    X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int* value, CUfunction_attribute attribute, CUfunction function))         \
    X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, (CUfunction function, size_t index, size_t* offset, size_t* size))        \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                          \
      (int* blocks, CUfunction function, int block_size, size_t dynamic_shared))                                               \
    X(cuLaunchKernel, cuLaunchKernel, 4000,                                                                                    \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,             \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra))                             \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000,                                                              \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,             \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters))
// clang-format on
