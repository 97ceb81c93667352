// The memory of all devices: a range of addresses that is the same in every process which runs kernels, and that the host can
// read and write only while a kernel runs in its process. The driver reads and writes it by a view of its own.
#pragma once

#include "state.h"

namespace simt::driver {

// Legal for AddressSanitizer and ThreadSanitizer. The lower half of the first addresses of each device is no positive int32_t, so
// that such a number in an argument is not taken for an address with what its padding happens to hold.
constexpr uint64_t arena_begin = 0x550080000000;
constexpr uint64_t device_bytes = uint64_t{1} << 35;
constexpr uint64_t arena_bytes = device_bytes * num_devices;
constexpr uint64_t gap_bytes = 256;  // before and behind every allocation
constexpr uint64_t alignment = 256;
constexpr uint64_t chunk_bytes = 4096;

// What memory holds that was never written, that was freed, and that is no allocation's. Each is a NaN as float16, bfloat16,
// float32 and float64, and a number that no index has.
constexpr uint32_t fresh_word = 0xfffbfffb, freed_word = 0xfff4fff4, gap_word = 0xfff1fff1;

bool map_arena();
int arena_file();
inline bool in_arena(uint64_t address) { return address >= arena_begin && address - arena_begin < arena_bytes; }
// The same of a word of an argument, which may also be a positive or a small negative int32_t beside padding, which may hold the
// upper half of an address of any device.
inline bool is_address(uint64_t word) {
    const uint32_t lower = static_cast<uint32_t>(word);
    return in_arena(word) && lower >= 0x80000000 && lower < 0xffff0000;
}

// Lets this thread read and write device memory by its addresses, until the call of the driver ends. Protecting pages anew takes
// longer than most launches, so that all of a call share it.
void open_arena();
void close_arena();

// The driver's view of device memory.
unsigned char* bytes_at(uint64_t address);

// Null if the device has no such addresses left.
AllocationPtr allocate(int device, uint64_t size);
// Its addresses may be given out again.
void release(const AllocationPtr& allocation);
// The allocation at an address, freed ones included; null in a gap. An address right behind an allocation is in its gap.
AllocationPtr allocation_at(uint64_t address);

// Memory of the host, or the view of a device's.
void fill(void* begin, uint64_t size, uint32_t word);
bool gaps_are_whole(const Allocation& allocation);
void mend_gaps(const Allocation& allocation);
// Hashes of the chunks of [begin, end) that are unknown, or of all.
void hash_chunks(Allocation& allocation, uint64_t begin, uint64_t end);
void forget_hashes(Allocation& allocation, uint64_t begin, uint64_t end);

}  // namespace simt::driver
