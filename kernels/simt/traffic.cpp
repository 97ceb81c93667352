// The kernels of this build are compiled with -fsanitize=thread but not linked with ThreadSanitizer. The compiler calls
// __tsan_read4 and similar functions before every access that the optimiser left, and here they count.
#include "traffic.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace simt {

namespace {

struct Range {
    uintptr_t begin, end;
};
std::vector<Range> global_ranges;
Range static_shared, dynamic_shared;
simt_counters sums;

bool within(Range range, uintptr_t address) { return address >= range.begin && address < range.end; }

// Memory that is neither shared nor in an array of the launch is local, an argument, or belongs to the emulator.
void count(const void* pointer, size_t size, uint64_t& global_bytes, uint64_t& shared_bytes) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    if (within(static_shared, address) || within(dynamic_shared, address)) {
        shared_bytes += size;
        return;
    }
    auto after = std::upper_bound(global_ranges.begin(), global_ranges.end(), address,
                                  [](uintptr_t a, const Range& range) { return a < range.begin; });
    if (after != global_ranges.begin() && within(*(after - 1), address)) global_bytes += size;
}

void load(const void* address, size_t size) { count(address, size, sums.global_loaded, sums.shared_loaded); }
void store(const void* address, size_t size) { count(address, size, sums.global_stored, sums.shared_stored); }

}  // namespace

void traffic_begin(const simt_launch_call& call, const char* shared_begin, const char* shared_end) {
    sums = {};
    global_ranges.clear();
    for (uint32_t i = 0; i < call.num_ranges; ++i)
        global_ranges.push_back({call.ranges[2 * i], call.ranges[2 * i + 1]});
    std::sort(global_ranges.begin(), global_ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
    static_shared = {reinterpret_cast<uintptr_t>(shared_begin), reinterpret_cast<uintptr_t>(shared_end)};
    dynamic_shared = {};
}

void traffic_dynamic_shared(const char* begin, size_t size) {
    dynamic_shared = {reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + size};
}

void traffic_end(simt_counters& counters) {
    counters.global_loaded = sums.global_loaded;
    counters.global_stored = sums.global_stored;
    counters.shared_loaded = sums.shared_loaded;
    counters.shared_stored = sums.shared_stored;
}

}  // namespace simt

#define SIMT_COUNT_ACCESS(size)                                                           \
    extern "C" void __tsan_read##size(const void* p) { simt::load(p, size); }             \
    extern "C" void __tsan_write##size(const void* p) { simt::store(p, size); }           \
    extern "C" void __tsan_unaligned_read##size(const void* p) { simt::load(p, size); }   \
    extern "C" void __tsan_unaligned_write##size(const void* p) { simt::store(p, size); } \
    extern "C" void __tsan_volatile_read##size(const void* p) { simt::load(p, size); }    \
    extern "C" void __tsan_volatile_write##size(const void* p) { simt::store(p, size); }
SIMT_COUNT_ACCESS(1)
SIMT_COUNT_ACCESS(2)
SIMT_COUNT_ACCESS(4)
SIMT_COUNT_ACCESS(8)
SIMT_COUNT_ACCESS(16)
extern "C" void __tsan_read_range(const void* p, size_t size) { simt::load(p, size); }
extern "C" void __tsan_write_range(const void* p, size_t size) { simt::store(p, size); }
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
