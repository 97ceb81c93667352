/* The C interface of a library of compiled kernels. One launch at a time; a second one waits. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_API_VERSION 4

enum simt_order { SIMT_FORWARD = 0, SIMT_REVERSE = 1, SIMT_SHUFFLE = 2 };

/* How matrix units add: mma.cpp. */
enum simt_mma { SIMT_V100 = 0, SIMT_A100 = 1, SIMT_H100 = 2, SIMT_LOWER = 3, SIMT_UNEVEN = 4, SIMT_NARROW = 5 };

typedef struct {
    uint64_t blocks, threads;
    uint64_t barriers; /* once a block */
    uint64_t grid_barriers;
    uint64_t warp_ops; /* once for all lanes of a mask */
    uint64_t atomics;  /* once a thread */
    uint64_t switches; /* how often a thread was resumed */
    /* Build "count" only, else 0. Bytes that the compiled code loads and stores. */
    uint64_t global_loaded, global_stored;
    uint64_t shared_loaded, shared_stored;
} simt_counters;

typedef struct {
    const char* kernel;
    uint32_t grid[3], block[3];
    uint64_t dynamic_shared; /* bytes */
    uint64_t static_shared;  /* bytes that the kernel declares, for the limit only */
    uint64_t shared_limit;   /* bytes; static and dynamic together may not exceed it */
    void** arguments;        /* the address of each argument */
    int32_t order;           /* simt_order */
    uint64_t seed;           /* of SIMT_SHUFFLE */
    int32_t mma;             /* simt_mma */
    int32_t cooperative;     /* whether all blocks are there at once, and may wait for each other */
    uint32_t num_ranges;     /* global memory, for build "count": [begin, end) each */
    const uintptr_t* ranges;
    simt_counters counters; /* out */
} simt_launch_call;

int simt_api_version(void);
int simt_num_kernels(void);
const char* simt_kernel_name(int index);
const char* simt_kernel_signature(int index);
int simt_kernel_max_threads(int index);
/* Bytes and alignment of a kernel's parameter; 0 if it has not so many. */
int simt_kernel_parameter(int index, int parameter, uint32_t* size, uint32_t* alignment);

/* Null, or what was wrong: "KIND: text". The text stays until the next launch. */
const char* simt_launch(simt_launch_call* call);

#ifdef __cplusplus
}
#endif
