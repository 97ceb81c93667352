/* What tests ask of the emulated machine, beside the driver API. hopfuse_simt/driver.py is the other end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number of a device, or of the machine (device -1); 0 if there is no such number. */
int simt_driver_set(int device, const char* name, int64_t value);
int simt_driver_get(int device, const char* name, int64_t* value);
int simt_driver_set_name(int device, const char* name);

/* Lets the calls of an entry point after the next `skip` fail with this code, `count` times (0: always). 0 if unknown. */
int simt_driver_fail(const char* entry, int code, int skip, int count);
/* How often it was called; -1 if unknown. */
int64_t simt_driver_calls(const char* entry);

/* Forgets logs, findings, counts of calls and failures to come. */
void simt_driver_clear(void);
/* Also makes a new machine: contexts and all that they own are gone, errors too. Settings stay. */
void simt_driver_reset(void);
/* Runs all that is queued. The host knows nothing of it. */
void simt_driver_finish(void);
/* Copies device memory as it is after all queued work; 0 if it is not allocated. */
int simt_driver_peek(uint64_t address, void* target, size_t size);

typedef struct {
    int32_t device;
    uint64_t size;
    char kind[16], name[128];
} simt_driver_event;

typedef struct {
    int32_t device;
    uint32_t grid[3], block[3];
    simt_counters counters;
    char kernel[128];
} simt_driver_launch;

/* Each takes the oldest entry of a log; 0 if there is none. */
int simt_driver_next_event(simt_driver_event* event);
int simt_driver_next_launch(simt_driver_launch* launch);
int simt_driver_next_finding(char* text, size_t size);
/* What the emulator or a sanitizer said about the last kernel that failed. */
void simt_driver_report(char* text, size_t size);

#ifdef __cplusplus
}
#endif
