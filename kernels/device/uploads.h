// Arrays of a call that are on the host, uploaded together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device.h"

namespace hopfuse::device {

// Replaces addresses of host memory, such as those in a kernel's arguments, by addresses of copies on the device. They are valid
// while this object exists, and for the work that is queued until then.
class Uploads {
public:
    Uploads() { pieces_.reserve(16); }
    Uploads(const Uploads&) = delete;
    Uploads& operator=(const Uploads&) = delete;

    // `address`, of `size` elements on the host, changes in copy(). An empty array gets no address.
    template <class T>
    void add(const T*& address, size_t size) {
        if (size == 0) address = nullptr;
        if (address == nullptr) return;
        pieces_.push_back({address, size * sizeof(T), &address, [](void* place, void* there) {
                               *static_cast<const T**>(place) = static_cast<const T*>(there);
                           }});
    }

    // Copies all arrays, in one copy if they are small; they have been read when it returns. Called once.
    void copy(Queue& queue);

private:
    struct Piece {
        const void* data;
        size_t nbytes;
        void* place;  // of the address, which `set` replaces
        void (*set)(void* place, void* there);
    };
    std::vector<Piece> pieces_;
    std::vector<Owner> owners_;
};

}  // namespace hopfuse::device
