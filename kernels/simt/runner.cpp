// The kernels as a program: it reads requests from standard input and writes answers to standard output, sanitizer reports to
// standard error. Both ends use little-endian, unpadded data.
//
// Without arguments, every array of a request gets a heap buffer of exactly its size, so that the first byte beyond it is out of
// bounds; hopfuse_simt/launcher.py is the other end. With a file and addresses as arguments, device memory is that file, at
// these addresses, and a request says which of them are allocated; libcuda/program.cpp is the other end.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "api.h"

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace {

[[noreturn]] void stop() { _exit(3); }

// False at a clean end of input.
bool read_all(void* to, size_t size, bool may_end = false) {
    size_t have = 0;
    while (have < size) {
        const ssize_t got = read(0, static_cast<char*>(to) + have, size - have);
        if (got == 0 && have == 0 && may_end) return false;
        if (got <= 0) stop();
        have += static_cast<size_t>(got);
    }
    return true;
}

void write_all(const void* from, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(1, static_cast<const char*>(from) + done, size - done);
        if (put <= 0) stop();
        done += static_cast<size_t>(put);
    }
}

template <class T>
T get() {
    T value;
    read_all(&value, sizeof value);
    return value;
}

template <class T>
void put(T value) {
    write_all(&value, sizeof value);
}

std::string get_text() {
    std::string text(get<uint32_t>(), '\0');
    read_all(text.data(), text.size());
    return text;
}

void put_text(const char* text) {
    const uint32_t size = static_cast<uint32_t>(strlen(text));
    put(size);
    write_all(text, size);
}

struct Buffer {
    char* data;
    uint64_t size;
    bool writable;
};

Buffer get_buffer() {
    Buffer buffer = {};
    buffer.size = get<uint64_t>();
    buffer.writable = get<uint8_t>() != 0;
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, buffer.size) != 0) stop();
    buffer.data = static_cast<char*>(memory);
    read_all(buffer.data, buffer.size);
    return buffer;
}

char* get_pointer(const std::vector<Buffer>& buffers) {
    const int32_t number = get<int32_t>();
    const uint64_t offset = get<uint64_t>();
    return number < 0 ? nullptr : buffers[static_cast<size_t>(number)].data + offset;
}

// One argument's bytes, in a separate heap block.
void* get_argument(const std::vector<Buffer>& buffers) {
    enum Kind : uint8_t { pointer, bytes, bytes_with_pointers };
    const uint8_t kind = get<uint8_t>();
    if (kind == pointer) {
        char** made = static_cast<char**>(malloc(sizeof(char*)));
        *made = get_pointer(buffers);
        return made;
    }
    std::string value = get_text();
    for (uint32_t left = kind == bytes_with_pointers ? get<uint32_t>() : 0; left > 0; --left) {
        const uint32_t place = get<uint32_t>();
        char* const address = get_pointer(buffers);
        memcpy(value.data() + place, &address, sizeof address);
    }
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, value.size()) != 0) stop();
    memcpy(memory, value.data(), value.size());
    return memory;
}

simt_launch_call get_call() {
    simt_launch_call call = {};
    read_all(call.grid, sizeof call.grid);
    read_all(call.block, sizeof call.block);
    call.dynamic_shared = get<uint64_t>();
    call.static_shared = get<uint64_t>();
    call.shared_limit = get<uint64_t>();
    call.order = get<int32_t>();
    call.seed = get<uint64_t>();
    call.mma = get<int32_t>();
    call.cooperative = get<int32_t>();
    return call;
}

void serve(uint32_t name_size) {
    std::string name(name_size, '\0');
    read_all(name.data(), name.size());
    simt_launch_call call = get_call();
    call.kernel = name.c_str();
    std::vector<Buffer> buffers;
    for (uint32_t left = get<uint32_t>(); left > 0; --left) buffers.push_back(get_buffer());
    std::vector<void*> arguments;
    for (uint32_t left = get<uint32_t>(); left > 0; --left) arguments.push_back(get_argument(buffers));
    call.arguments = arguments.data();

    const char* error = simt_launch(&call);

    put_text(error == nullptr ? "" : error);
    put(call.counters);
    for (const Buffer& buffer : buffers) {
        if (buffer.writable) write_all(buffer.data, buffer.size);
        free(buffer.data);
    }
    for (void* argument : arguments) free(argument);
}

// ------------------------------------------------------------------------------------------------
// Device memory at its own addresses

struct Range {
    uint64_t begin, end;
};
std::vector<Range> opened, allocated;  // what was ever in use, and the allocations, in ascending order

char* at(uint64_t address) { return reinterpret_cast<char*>(static_cast<uintptr_t>(address)); }

void map_memory(int file, uint64_t begin, uint64_t size) {
    void* const got = mmap(at(begin), size, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
    if (got != at(begin)) {
        fprintf(stderr, "simt: the addresses of device memory are in use\n");
        stop();
    }
}

void set_addressable([[maybe_unused]] Range range, [[maybe_unused]] bool is_addressable) {
#if defined(SIMT_ASAN)
    if (is_addressable) __asan_unpoison_memory_region(at(range.begin), range.end - range.begin);
    else __asan_poison_memory_region(at(range.begin), range.end - range.begin);
#endif
}

std::vector<Range> get_ranges() {
    std::vector<Range> ranges(get<uint32_t>());
    read_all(ranges.data(), ranges.size() * sizeof(Range));
    return ranges;
}

// Opens what came into use, and makes exactly the allocations addressable.
void get_memory() {
    const std::vector<Range> in_use = get_ranges();
    opened.resize(in_use.size());
    for (size_t i = 0; i < in_use.size(); ++i) {
        if (opened[i].end == 0) opened[i] = {in_use[i].begin, in_use[i].begin};
        const Range more = {opened[i].end, in_use[i].end};
        if (more.end <= more.begin) continue;
        if (mprotect(at(more.begin), more.end - more.begin, PROT_READ | PROT_WRITE) != 0) stop();
        set_addressable(more, false);
        opened[i].end = more.end;
    }
    std::vector<Range> now = get_ranges();
    size_t i = 0, j = 0;
    std::vector<Range> fresh;
    while (i < allocated.size() || j < now.size()) {
        const bool is_gone = j == now.size() || (i < allocated.size() && allocated[i].begin < now[j].begin);
        const bool is_new = i == allocated.size() || (j < now.size() && now[j].begin < allocated[i].begin);
        if (!is_gone && !is_new && allocated[i].end == now[j].end) {
            ++i, ++j;
            continue;
        }
        if (!is_new) set_addressable(allocated[i++], false);
        if (!is_gone) fresh.push_back(now[j++]);
    }
    for (const Range& range : fresh) set_addressable(range, true);
    allocated.swap(now);
}

int number_of(const std::string& name) {
    for (int i = 0; i < simt_num_kernels(); ++i)
        if (name == simt_kernel_name(i)) return i;
    stop();
}

void serve_memory(uint32_t name_size) {
    std::string name(name_size, '\0');
    read_all(name.data(), name.size());
    simt_launch_call call = get_call();
    call.kernel = name.c_str();
    get_memory();
    // Each argument in a separate heap block.
    std::vector<void*> arguments;
    uint32_t size, alignment;
    const int kernel = number_of(name);
    for (int i = 0; simt_kernel_parameter(kernel, i, &size, &alignment) != 0; ++i) {
        void* memory = nullptr;
        if (posix_memalign(&memory, 64, size) != 0) stop();
        read_all(memory, size);
        arguments.push_back(memory);
    }
    call.arguments = arguments.data();
    const char* error = simt_launch(&call);
    put_text(error == nullptr ? "" : error);
    put(call.counters);
    for (void* argument : arguments) free(argument);
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 4)
        map_memory(atoi(arguments[1]), strtoull(arguments[2], nullptr, 0), strtoull(arguments[3], nullptr, 0));
    put<uint32_t>(SIMT_API_VERSION);
    put<uint32_t>(static_cast<uint32_t>(simt_num_kernels()));
    for (int i = 0; i < simt_num_kernels(); ++i) {
        put_text(simt_kernel_name(i));
        put_text(simt_kernel_signature(i));
        put<int32_t>(simt_kernel_max_threads(i));
        uint32_t size, alignment;
        for (int j = 0; simt_kernel_parameter(i, j, &size, &alignment) != 0; ++j) {
            put(size);
            put(alignment);
        }
        put<uint32_t>(0);
    }
    uint32_t name_size;
    while (read_all(&name_size, sizeof name_size, true)) {
        if (count == 4) serve_memory(name_size);
        else serve(name_size);
    }
    return 0;
}
