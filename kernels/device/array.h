// An array in the memory of a device.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>

namespace hopfuse::device {

// Whatever keeps memory alive: an allocation that ends with it, or an owner elsewhere, such as a caller's array.
using Owner = std::shared_ptr<const void>;

// `size` elements at an address of the device, kept alive. The host never dereferences it. Copies share the memory. Memory of a
// queue is freed in the order of its stream, so an array may be dropped as soon as the work that uses it is queued.
template <class T>
class Array {
public:
    Array() = default;  // a null pointer
    Array(Owner owner, T* data, size_t size) : owner_(std::move(owner)), data_(data), size_(size) {}

    T* data() const { return data_; }
    size_t size() const { return size_; }
    size_t nbytes() const { return size_ * sizeof(T); }
    const Owner& owner() const { return owner_; }
    explicit operator bool() const { return data_ != nullptr; }
    operator T*() const { return data_; }  // as a kernel's argument

    // Elements first .. first + count - 1, sharing the memory.
    Array part(size_t first, size_t count) const {
        assert(first + count <= size_);
        return Array(owner_, data_ + first, count);
    }
    template <class U>
    Array<U> as() const {
        return Array<U>(owner_, reinterpret_cast<U*>(data_), size_ * sizeof(T) / sizeof(U));
    }

private:
    Owner owner_;
    T* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace hopfuse::device
