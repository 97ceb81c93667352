// cuGetProcAddress: the newest entry point of a name that the caller's version and this driver have.
#include <cstring>

#include "state.h"

namespace simt::driver {

namespace {

struct Found {
    const char* asked;
    int since;
    void* function;
};

const Found entries[] = {
#define SIMT_ENTRY(name, asked, since, parameters) {#asked, since, reinterpret_cast<void*>(&name)},
    SIMT_ENTRY_POINTS(SIMT_ENTRY)
#undef SIMT_ENTRY
};

CUresult look_up(const char* symbol, void** function, int version, uint64_t flags,
                 CUdriverProcAddressQueryResult& status) {
    *function = nullptr;
    status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    int best = 0;
    for (const Found& entry : entries) {
        if (strcmp(entry.asked, symbol) != 0 || entry.since > machine.driver_version) continue;
        if (entry.since > version) {
            if (best == 0) status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        } else if (entry.since > best) {
            best = entry.since;
            *function = entry.function;
            status = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    return best > 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
    SIMT_BEGIN(cuGetProcAddress, Needs::nothing);
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult status;
    return look_up(symbol, function, version, flags, status);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    SIMT_BEGIN(cuGetProcAddress_v2, Needs::nothing);
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult found;
    const CUresult code = look_up(symbol, function, version, flags, found);
    if (status == nullptr) return code;
    *status = found;
    return code == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : code;
}
}

}  // namespace simt::driver
