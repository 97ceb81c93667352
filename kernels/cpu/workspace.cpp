#include "workspace.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define HOPFUSE_HAS_FORK
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hopfuse {

namespace {

constexpr size_t huge_page = size_t{1} << 21;
constexpr int max_idle = 16;

struct Idle {
    std::mutex mutex;
    Workspace* workspaces[max_idle] = {};
    int count = 0;
};

// A forked child has no thread that could release a lock or return a workspace, so it starts without either.
alignas(Idle) unsigned char storage[sizeof(Idle)];

void make_idle() { new (storage) Idle; }

Idle& idle() {
    static const bool made = [] {
        make_idle();
#if defined(HOPFUSE_HAS_FORK)
        pthread_atfork(nullptr, nullptr, make_idle);
#endif
        return true;
    }();
    static_cast<void>(made);
    return *std::launder(reinterpret_cast<Idle*>(storage));
}

}  // namespace

void* allocate(size_t bytes) {
    const size_t alignment = bytes >= huge_page ? huge_page : 64;
    const size_t most = bytes < alignment ? alignment : bytes;
    const size_t rounded = (most + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
#if defined(__linux__)
    if (memory != nullptr && alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memory;
}

Workspace::~Workspace() {
    for (void* buffer : buffer_) std::free(buffer);
    for (void* buffer : zeros_) std::free(buffer);
}

void* Workspace::reserve(int slot, size_t bytes) {
    if (bytes > size_[slot]) {
        std::free(buffer_[slot]);
        buffer_[slot] = allocate(bytes);
        size_[slot] = buffer_[slot] == nullptr ? 0 : bytes;
    }
    if (buffer_[slot] == nullptr) {  // a request for 0 bytes still gets an address
        buffer_[slot] = allocate(64);
        size_[slot] = buffer_[slot] == nullptr ? 0 : 64;
    }
    return bytes > size_[slot] ? nullptr : buffer_[slot];
}

void* Workspace::reserve_zeros(int slot, size_t bytes) {
    if (bytes > zeros_size_[slot] || zeros_[slot] == nullptr) {
        std::free(zeros_[slot]);
        zeros_[slot] = std::calloc(bytes + 1, 1);
#if defined(__linux__)
        if (zeros_[slot] != nullptr && bytes >= 2 * huge_page) {
            const uintptr_t begin = (reinterpret_cast<uintptr_t>(zeros_[slot]) + huge_page - 1) / huge_page * huge_page;
            const uintptr_t end = (reinterpret_cast<uintptr_t>(zeros_[slot]) + bytes) / huge_page * huge_page;
            madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
        }
#endif
        zeros_size_[slot] = zeros_[slot] == nullptr ? 0 : bytes;
    }
    return zeros_[slot];
}

size_t Workspace::bytes() const {
    size_t total = 0;
    for (size_t size : size_) total += size;
    for (size_t size : zeros_size_) total += size;
    return total;
}

WorkspaceLease::WorkspaceLease() : workspace_(nullptr) {
    {
        Idle& from = idle();
        const std::lock_guard<std::mutex> lock(from.mutex);
        if (from.count > 0) workspace_ = from.workspaces[--from.count];
    }
    if (workspace_ == nullptr) workspace_ = new (std::nothrow) Workspace;
}

WorkspaceLease::~WorkspaceLease() {
    if (workspace_ == nullptr) return;
    {
        Idle& to = idle();
        const std::lock_guard<std::mutex> lock(to.mutex);
        if (to.count < max_idle) {
            to.workspaces[to.count++] = workspace_;
            return;
        }
    }
    delete workspace_;
}

size_t idle_workspace_bytes() {
    Idle& held = idle();
    const std::lock_guard<std::mutex> lock(held.mutex);
    size_t total = 0;
    for (int i = 0; i < held.count; ++i) total += held.workspaces[i]->bytes();
    return total;
}

void release_workspaces() {
    Idle& held = idle();
    const std::lock_guard<std::mutex> lock(held.mutex);
    while (held.count > 0) delete held.workspaces[--held.count];
}

}  // namespace hopfuse
