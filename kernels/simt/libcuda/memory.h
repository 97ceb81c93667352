// Memory of devices and pinned memory of the host.
#pragma once

#include "state.h"

namespace simt::driver {

// The touch of [address, address + size), which must be within one allocation.
CUresult touch_of(Touch& out, uint64_t address, uint64_t size, Touch::Use use);

// The pinned block of an address, freed ones included; null for pageable memory.
PinnedPtr pinned_at(uintptr_t address);

// Returns memory that pools keep beyond their thresholds, after the host waited.
void release_cached(Context& context);
// All memory of a context that ends.
void free_all(Context& context);
int opt_in_shared(int capability);
void destroy_contexts();

}  // namespace simt::driver
