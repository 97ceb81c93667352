// Memory for a number of values, owned.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "workspace.h"

namespace hopfuse {

// `size` values with undefined contents. An array of 0 values has an address; one without size has none.
template <class T>
class Array {
public:
    Array() = default;
    explicit Array(int64_t size) : data_(static_cast<T*>(allocate(size_t(size) * sizeof(T)))), size_(size) {
        if (data_ == nullptr) throw std::bad_alloc();
    }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](int64_t i) { return data_[size_t(i)]; }
    const T& operator[](int64_t i) const { return data_[size_t(i)]; }
    int64_t size() const { return size_; }
    int64_t bytes() const { return size_ * int64_t{sizeof(T)}; }

private:
    struct Free {
        void operator()(T* memory) const { std::free(memory); }
    };
    std::unique_ptr<T[], Free> data_;
    int64_t size_ = 0;
};

}  // namespace hopfuse
