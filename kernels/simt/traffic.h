// Counts bytes loaded and stored, for the build "count", in which the compiler calls a function before every access. In the
// other builds these do nothing.
#pragma once

#include <cstddef>

#include "api.h"

namespace simt {

#if defined(SIMT_COUNT)
void traffic_begin(const simt_launch_call& call, const char* shared_begin, const char* shared_end);
void traffic_dynamic_shared(const char* begin, size_t size);
void traffic_end(simt_counters& counters);
#else
inline void traffic_begin(const simt_launch_call&, const char*, const char*) {}
inline void traffic_dynamic_shared(const char*, size_t) {}
inline void traffic_end(simt_counters&) {}
#endif

}  // namespace simt
