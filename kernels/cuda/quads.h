// Four neighbouring lanes of a row, a quad, which a thread reads and writes by 128 bits. Tables have L lanes side by side; row
// r's quad q begins at r L + 4 q. Device code only.
#pragma once

#include "hopfuse/device.h"
#include "hopfuse/integers.h"

namespace hopfuse {

// The quads of a row, and so the threads.
template <int L>
constexpr int QUADS = L / 4;

template <class T>
struct Quad {
    T lane[4];

    __device__ T& operator[](int i) { return lane[i]; }
    __device__ const T& operator[](int i) const { return lane[i]; }
};

HOPFUSE_DEVICE Quad<float> read_quad(const float* at) {
    const float4 four = *reinterpret_cast<const float4*>(at);
    return Quad<float>{{four.x, four.y, four.z, four.w}};
}

HOPFUSE_DEVICE Quad<double> read_quad(const double* at) {
    const double2 low = reinterpret_cast<const double2*>(at)[0], high = reinterpret_cast<const double2*>(at)[1];
    return Quad<double>{{low.x, low.y, high.x, high.y}};
}

HOPFUSE_DEVICE Quad<double> same_in_quad(double all) { return Quad<double>{{all, all, all, all}}; }

HOPFUSE_DEVICE void write_quad(float* at, const Quad<float>& quad) {
    store_four(at, make_float4(quad[0], quad[1], quad[2], quad[3]));
}

// The threads of a row's quads, for shuffles among them.
template <int L>
HOPFUSE_DEVICE unsigned team_of_row() {
    return ((1u << QUADS<L>)-1) << (threadIdx.x % 32 / QUADS<L> * QUADS<L>);
}

// The rows of a thread: every `stride`-th from `first` on. A block's threads have neighbouring rows, a launch's all rows; there are
// fewer than 2^31 rows, and fewer than 2^26 at once.
template <int L>
struct QuadRows {
    uint32_t first, stride;
    int at;  // of the thread's quad in a row

    __device__ QuadRows()
        : first(blockIdx.x * (blockDim.x / QUADS<L>)+threadIdx.x / QUADS<L>),
          stride(gridDim.x * (blockDim.x / QUADS<L>)), at(static_cast<int>(threadIdx.x) % QUADS<L> * 4) {}
};

}  // namespace hopfuse
