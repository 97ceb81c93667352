// Resident blocks as NVIDIA's cuda_occupancy.h computes them. A line of input is a case: architecture, warps, shared
// memory and the driver's share of it (limits of the multiprocessor), registers, threads and shared memory of a block.
#include <cuda_occupancy.h>

#include <cstdio>

int main() {
    int architecture, warps, registers, block;
    unsigned long multiprocessor_shared, reserved, shared;
    while (std::scanf("%d %d %lu %lu %d %d %lu", &architecture, &warps, &multiprocessor_shared, &reserved, &registers,
                      &block, &shared) == 7) {
        cudaOccDeviceProp device;
        device.computeMajor = architecture / 10;
        device.computeMinor = architecture % 10;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = warps * 32;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = device.sharedMemPerBlockOptin = 48 * 1024;
        device.sharedMemPerMultiprocessor = multiprocessor_shared;
        device.numSms = 1;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = shared;
        const cudaOccDeviceState state;
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, block, 0) != CUDA_OCC_SUCCESS)
            return 1;
        std::printf("%d\n", result.activeBlocksPerMultiprocessor);
    }
}
