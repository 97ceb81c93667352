#include "uploads.h"

namespace hopfuse::device {

void Uploads::copy(Queue& queue) {
    const size_t count = pieces_.size();
    if (count == 0) return;
    std::vector<const void*> data(count);
    std::vector<size_t> nbytes(count);
    for (size_t i = 0; i < count; ++i) {
        data[i] = pieces_[i].data;
        nbytes[i] = pieces_[i].nbytes;
    }
    std::vector<void*> there(count);
    owners_.resize(count);
    queue.upload_bytes(data, nbytes, there, owners_);
    for (size_t i = 0; i < count; ++i) pieces_[i].set(pieces_[i].place, there[i]);
}

}  // namespace hopfuse::device
