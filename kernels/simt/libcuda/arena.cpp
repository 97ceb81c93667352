#include "arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace simt::driver {

namespace {

int file = -1;
int protection_key = -1;  // of processors that have them; else pages are protected, which takes longer
unsigned char* view = nullptr;
bool is_open = false;
constexpr uint64_t least_before_reuse = uint64_t{64} << 20;
constexpr uint64_t returned_at_once = uint64_t{1} << 20;  // allocations of this size give their pages back
constexpr size_t freed_records = 4096;

void* at(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }
// Neither children that are forked nor dumps of memory have any of it.
void* map(void* wanted, int protection, int flags, int shared) {
    void* const got = mmap(wanted, arena_bytes, protection, MAP_SHARED | MAP_NORESERVE | flags, shared, 0);
    if (got == MAP_FAILED) return nullptr;
    madvise(got, arena_bytes, MADV_DONTFORK);
    madvise(got, arena_bytes, MADV_DONTDUMP);
    return got;
}
uint64_t round_up(uint64_t size) { return (size + alignment - 1) / alignment * alignment; }
uint64_t first_of(int device) { return arena_begin + static_cast<uint64_t>(device) * device_bytes; }

void protect_pages(int protection) {
    for (int i = 0; i < num_devices; ++i) {
        const uint64_t end = machine.devices[static_cast<size_t>(i)].used_end;
        if (end > first_of(i)) mprotect(at(first_of(i)), end - first_of(i), protection);
    }
}

// Pages that were never given out stay closed, so that an access which faults on one processor does so on all.
void give_pages(Device& device, uint64_t end) {
    if (end <= device.used_end) return;
    void* const first = at(device.used_end);
    const uint64_t size = end - device.used_end;
    if (protection_key >= 0) pkey_mprotect(first, size, PROT_READ | PROT_WRITE, protection_key);
    else if (is_open) mprotect(first, size, PROT_READ | PROT_WRITE);
    device.used_end = end;
}

// Where its data end, without the gap behind, which may be the next one's gap before.
uint64_t end_of(const Allocation& a) { return a.begin + round_up(a.size); }

}  // namespace

bool map_arena() {
    if (file >= 0) return true;
    const int made = memfd_create("simt-device-memory", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, static_cast<off_t>(arena_bytes)) != 0) return false;
    if (machine.with_protection_keys) protection_key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    void* const wanted = at(arena_begin);
    const bool is_mapped = map(wanted, PROT_NONE, MAP_FIXED_NOREPLACE, made) == wanted;
    if (is_mapped) view = static_cast<unsigned char*>(map(nullptr, PROT_READ | PROT_WRITE, 0, made));
    if (view == nullptr) {
        close(made);
        return false;
    }
    for (int i = 0; i < num_devices; ++i) {
        Device& device = machine.devices[static_cast<size_t>(i)];
        device.cursor = device.used_end = first_of(i);
    }
    file = made;
    return true;
}

int arena_file() { return file; }

unsigned char* bytes_at(uint64_t address) { return view + (address - arena_begin); }

void open_arena() {
    if (is_open) return;
    is_open = true;
    if (protection_key >= 0) pkey_set(protection_key, 0);
    else protect_pages(PROT_READ | PROT_WRITE);
}

void close_arena() {
    if (!is_open) return;
    is_open = false;
    if (protection_key >= 0) pkey_set(protection_key, PKEY_DISABLE_ACCESS);
    else protect_pages(PROT_NONE);
}

// The next free addresses behind the last ones given out. They begin again only after 64 MB, or four times what is in use, so
// that a late use of freed memory finds no other allocation.
AllocationPtr allocate(int number, uint64_t size) {
    Device& device = machine.devices[static_cast<size_t>(number)];
    const uint64_t first = first_of(number), need = gap_bytes + round_up(size) + gap_bytes;
    const uint64_t soft = std::max(least_before_reuse, 4 * (device.live_bytes + need));
    const uint64_t end = first + std::min(soft, device_bytes);
    auto& all = device.allocations;
    bool wrapped = false;
    uint64_t place = device.cursor;
    for (;;) {
        if (place + need > end) {
            if (wrapped) {
                if (end == first + device_bytes) return nullptr;
                place = device.used_end;  // everything before is in use
                if (place + need > first + device_bytes) return nullptr;
                break;
            }
            wrapped = true;
            place = first;
        }
        // Freed records in the way are forgotten; a living allocation is stepped over.
        auto next = all.lower_bound(place);
        if (next != all.begin()) {
            auto before = std::prev(next);
            if (end_of(*before->second) > place && before->second->is_gone) all.erase(before);
            else if (end_of(*before->second) > place) {
                place = end_of(*before->second);
                continue;
            }
        }
        bool is_free = true;
        while (next != all.end() && next->second->begin < place + need) {
            if (!next->second->is_gone) {
                place = end_of(*next->second);
                is_free = false;
                break;
            }
            next = all.erase(next);
        }
        if (is_free) break;
    }
    auto made = std::make_shared<Allocation>();
    made->begin = place + gap_bytes;
    made->size = size;
    made->device = number;
    all[made->begin] = made;
    device.cursor = end_of(*made);
    device.live_bytes += need;
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    give_pages(device, (place + need + page - 1) / page * page);
    if (machine.noop) return made;
    mend_gaps(*made);
    fill(bytes_at(made->begin), size, fresh_word);
    return made;
}

void release(const AllocationPtr& allocation) {
    if (allocation->is_gone) return;
    allocation->is_free = allocation->is_gone = true;
    allocation->accesses.clear();
    allocation->hashes.clear();
    allocation->writer = nullptr;
    Device& device = machine.devices[static_cast<size_t>(allocation->device)];
    device.live_bytes -= gap_bytes + round_up(allocation->size) + gap_bytes;
    if (!machine.noop) {
        if (allocation->size < returned_at_once) fill(bytes_at(allocation->begin), allocation->size, freed_word);
        else {
            const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
            const uint64_t begin = (allocation->begin + page - 1) / page * page;
            const uint64_t end = (allocation->begin + allocation->size) / page * page;
            fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin - arena_begin),
                      static_cast<off_t>(end - begin));
        }
    }
    device.freed.push_back(allocation);
    while (device.freed.size() > freed_records) {
        const auto found = device.allocations.find(device.freed.front()->begin);
        if (found != device.allocations.end() && found->second == device.freed.front()) device.allocations.erase(found);
        device.freed.pop_front();
    }
}

AllocationPtr allocation_at(uint64_t address) {
    if (!in_arena(address)) return nullptr;
    const auto& all = machine.devices[static_cast<size_t>((address - arena_begin) / device_bytes)].allocations;
    auto found = all.upper_bound(address);
    if (found == all.begin()) return nullptr;
    --found;
    return address - found->second->begin < found->second->size ? found->second : nullptr;
}

void fill(void* begin, uint64_t size, uint32_t word) {
    auto* const bytes = static_cast<unsigned char*>(begin);
    const uint64_t pair = uint64_t{word} << 32 | word;
    uint64_t i = 0;
    for (; i + 8 <= size; i += 8) memcpy(bytes + i, &pair, 8);
    memcpy(bytes + i, &pair, size - i);
}

void mend_gaps(const Allocation& a) {
    fill(bytes_at(a.begin) - gap_bytes, gap_bytes, gap_word);
    // Behind the last byte, which need not end a word.
    unsigned char* const data = bytes_at(a.begin);
    const uint64_t end = end_of(a) + gap_bytes - a.begin, words = (a.size + 3) / 4 * 4;
    for (uint64_t i = a.size; i < words; ++i) data[i] = static_cast<unsigned char>(gap_word >> (8 * (i % 4)));
    fill(data + words, end - words, gap_word);
}

bool gaps_are_whole(const Allocation& a) {
    const unsigned char* const before = bytes_at(a.begin - gap_bytes);
    for (uint64_t i = 0; i < gap_bytes; i += 4)
        if (memcmp(before + i, &gap_word, 4) != 0) return false;
    const unsigned char* const data = bytes_at(a.begin);
    const uint64_t end = end_of(a) + gap_bytes - a.begin;
    uint64_t i = a.size;
    for (; i < end && i % 4 != 0; ++i)
        if (data[i] != static_cast<unsigned char>(gap_word >> (8 * (i % 4)))) return false;
    for (; i < end; i += 4)
        if (memcmp(data + i, &gap_word, 4) != 0) return false;
    return true;
}

namespace {

#if defined(__x86_64__) && !defined(__clang__)
#define SIMT_FAST __attribute__((target_clones("avx2", "default")))
#else
#define SIMT_FAST
#endif

using Lanes = uint64_t __attribute__((vector_size(32)));

// Eight sums of products of 32 bits, as in XXH3, with keys that change from step to step.
SIMT_FAST void hash_steps(uint64_t* sums, const unsigned char* bytes, uint64_t steps) {
    constexpr uint64_t first = 0x9e3779b97f4a7c15u, more = 0xd6e8feb86659fd93u;
    Lanes keys[2] = {{first, 2 * first, 3 * first, 4 * first}, {5 * first, 6 * first, 7 * first, 8 * first}};
    Lanes own[2] = {};
    for (uint64_t step = 0; step < steps; ++step)
        for (int half = 0; half < 2; ++half) {
            Lanes words;
            memcpy(&words, bytes + 64 * step + 32 * half, sizeof words);
            const Lanes mixed = words ^ keys[half];
            own[half] += (mixed & 0xffffffffu) * (mixed >> 32) + words + (words << 7);
            keys[half] += more;
        }
    memcpy(sums, own, sizeof own);
}

// Not zero, which means unknown.
uint64_t hash_of(const unsigned char* bytes, uint64_t size) {
    uint64_t sums[8];
    const uint64_t steps = size / 64;
    hash_steps(sums, bytes, steps);
    uint64_t total = size;
    for (uint64_t i = 64 * steps; i < size; ++i) total = (total ^ bytes[i]) * 0x100000001b3u;
    for (const uint64_t sum : sums) total = ((total ^ sum) * 0xbf58476d1ce4e5b9u) ^ (total >> 31);
    return total | 1u;
}

}  // namespace

void hash_chunks(Allocation& a, uint64_t begin, uint64_t end) {
    a.hashes.resize((a.size + chunk_bytes - 1) / chunk_bytes);
    for (uint64_t i = begin / chunk_bytes; i * chunk_bytes < end; ++i)
        if (a.hashes[i] == 0)
            a.hashes[i] = hash_of(bytes_at(a.begin + i * chunk_bytes), std::min(chunk_bytes, a.size - i * chunk_bytes));
}

void forget_hashes(Allocation& a, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin / chunk_bytes; i < a.hashes.size() && i * chunk_bytes < end; ++i) a.hashes[i] = 0;
}

}  // namespace simt::driver
