// Memory that is reused between calls: each call takes a workspace from a pool and returns it, so a second call of the same
// size allocates nothing. Thread-safe.
#pragma once

#include <cstddef>

namespace hopfuse {

// At least `bytes` bytes with undefined contents, aligned to 64 bytes and in huge pages if there are many; or null. std::free
// frees them.
void* allocate(size_t bytes);

class Workspace {
public:
    static constexpr int max_slots = 32;

    Workspace() = default;
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace();

    // A 64-byte aligned buffer of at least `bytes` bytes with undefined contents, or null. A slot keeps
    // its buffer until it must grow.
    void* reserve(int slot, size_t bytes);

    template <class T>
    T* reserve(int slot, size_t count) {
        return static_cast<T*>(reserve(slot, count * sizeof(T)));
    }

    // A buffer of zeros: its users restore the zeros before they return the workspace. Memory that was never written costs
    // nothing. Has its own slots.
    static constexpr int max_zero_slots = 5;
    void* reserve_zeros(int slot, size_t bytes);

    template <class T>
    T* reserve_zeros(int slot, size_t count) {
        return static_cast<T*>(reserve_zeros(slot, count * sizeof(T)));
    }

    size_t bytes() const;

private:
    void* buffer_[max_slots] = {};
    size_t size_[max_slots] = {};
    void* zeros_[max_zero_slots] = {};
    size_t zeros_size_[max_zero_slots] = {};
};

// Takes a workspace on construction and returns it at the end of the scope.
class WorkspaceLease {
public:
    WorkspaceLease();
    ~WorkspaceLease();
    WorkspaceLease(const WorkspaceLease&) = delete;
    WorkspaceLease& operator=(const WorkspaceLease&) = delete;
    explicit operator bool() const { return workspace_ != nullptr; }
    Workspace& operator*() const { return *workspace_; }
    Workspace* operator->() const { return workspace_; }

private:
    Workspace* workspace_;
};

// The bytes held by idle workspaces, and a function that frees them.
size_t idle_workspace_bytes();
void release_workspaces();

}  // namespace hopfuse
