#include "workspace.h"

#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hopfuse {

namespace {

constexpr size_t huge_page = size_t{1} << 21;
constexpr int max_idle = 16;

std::mutex pool_mutex;
Workspace* idle[max_idle];
int idle_count = 0;

void* allocate(size_t bytes) {
    const size_t alignment = bytes >= huge_page ? huge_page : 64;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
#if defined(__linux__)
    if (memory != nullptr && alignment == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memory;
}

}  // namespace

Workspace::~Workspace() {
    for (void* buffer : buffer_) std::free(buffer);
}

void* Workspace::reserve(int slot, size_t bytes) {
    if (bytes > size_[slot]) {
        std::free(buffer_[slot]);
        buffer_[slot] = allocate(bytes);
        size_[slot] = buffer_[slot] == nullptr ? 0 : bytes;
    }
    if (buffer_[slot] == nullptr) {  // a request for nothing still gets an address
        buffer_[slot] = allocate(64);
        size_[slot] = buffer_[slot] == nullptr ? 0 : 64;
    }
    return bytes > size_[slot] ? nullptr : buffer_[slot];
}

size_t Workspace::bytes() const {
    size_t total = 0;
    for (size_t size : size_) total += size;
    return total;
}

WorkspaceLease::WorkspaceLease() : workspace_(nullptr) {
    {
        const std::lock_guard<std::mutex> lock(pool_mutex);
        if (idle_count > 0) workspace_ = idle[--idle_count];
    }
    if (workspace_ == nullptr) workspace_ = new (std::nothrow) Workspace;
}

WorkspaceLease::~WorkspaceLease() {
    if (workspace_ == nullptr) return;
    {
        const std::lock_guard<std::mutex> lock(pool_mutex);
        if (idle_count < max_idle) {
            idle[idle_count++] = workspace_;
            return;
        }
    }
    delete workspace_;
}

size_t idle_workspace_bytes() {
    const std::lock_guard<std::mutex> lock(pool_mutex);
    size_t total = 0;
    for (int i = 0; i < idle_count; ++i) total += idle[i]->bytes();
    return total;
}

void release_workspaces() {
    const std::lock_guard<std::mutex> lock(pool_mutex);
    while (idle_count > 0) delete idle[--idle_count];
}

}  // namespace hopfuse
