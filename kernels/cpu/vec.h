// std::vector in the instruction set's own namespace. The linker keeps one copy of each inline function name, so code of
// std::vector<float> for one set could run on another; an allocator in the set's namespace makes all names differ.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace hopfuse::HOPFUSE_ISA_NS {

template <class T>
struct VecMemory {
    using value_type = T;

    VecMemory() = default;
    template <class U>
    VecMemory(const VecMemory<U>&) {}

    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T))); }
    void deallocate(T* memory, size_t) { ::operator delete(memory); }

    template <class U>
    bool operator==(const VecMemory<U>&) const {
        return true;
    }
};

template <class T>
using Vec = std::vector<T, VecMemory<T>>;

}  // namespace hopfuse::HOPFUSE_ISA_NS
