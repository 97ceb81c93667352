// ising_f32 on a device. Contract: hopfuse/ising.h, whose functions it uses.
#include "arguments/ising_f32.h"
#include "arguments/kernel_type.h"
#include "hopfuse/device.h"
#include "hopfuse/ising.h"
#include "hopfuse/query_status.h"
#include "warp.h"

namespace hopfuse {

struct Row {
    int64_t begin, end;
};

// A document outside the graph has no neighbours. Its query is refused, but the block continues.
HOPFUSE_DEVICE Row row_of(const IsingGraph& graph, int64_t id) {
    if (id < 0 || id >= graph.num_nodes) return Row{0, 0};
    const int32_t node = graph.internal_of[id];
    return Row{graph.indptr[node], graph.indptr[node + 1]};
}

// The first entry of a row, from `begin` on, whose neighbour is not below `node`.
HOPFUSE_DEVICE int64_t find_neighbour(const IsingGraph& graph, int64_t begin, int64_t end, int32_t node) {
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (column_at(graph.entries, middle) < node) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

// S of two candidates: looks up each neighbour of the shorter row in the rest of the longer one.
HOPFUSE_DEVICE double shared_weight(const IsingGraph& graph, Row a, Row b) {
    Row few = a, many = b;
    if (b.end - b.begin < a.end - a.begin) {
        few = b;
        many = a;
    }
    double total = 0.0;
    while (few.begin < few.end && many.begin < many.end) {
        const int32_t node = column_at(graph.entries, few.begin);
        const double weight = neighbour_weight(graph, few.begin, few.end);
        many.begin = find_neighbour(graph, many.begin, many.end, node);
        if (many.begin < many.end && column_at(graph.entries, many.begin) == node)
            total = total + weight * neighbour_weight(graph, many.begin, many.end);
    }
    return total;
}

// A query's list.
struct Candidates {
    int64_t n;
    const int64_t* ids;
    const float* scores;
};

// A block's buffers: n numbers each in shared memory; A and a row of S per warp in global memory.
struct Room {
    float *h, *m, *next;
    float* coupling;
    double* shared;
};

// Called by all warps, with a candidate per warp.
template <class F>
HOPFUSE_DEVICE void each_row(int64_t n, F f) {
    HOPFUSE_ROLLED
    for (int64_t i = threadIdx.x / 32; i < n; i += blockDim.x / 32) f(i);
}

// Computes the rows of A, one warp per row.
HOPFUSE_DEVICE void couple(const Warp& team, const IsingGraph& graph, const Candidates& list, const Room& room) {
    double* const raw = room.shared + threadIdx.x / 32 * list.n;
    each_row(list.n, [=](int64_t i) {
        const Row row = row_of(graph, list.ids[i]);
        ising_row(team, list.n, raw, room.coupling + i * list.n,
                  [=](int64_t j) { return i == j ? 0.0 : shared_weight(graph, row, row_of(graph, list.ids[j])); });
    });
}

// Computes the scores, in room.h.
HOPFUSE_DEVICE void settle(const Warp& team, const IsingModel& model, int64_t n, const Room& room) {
    float *m = room.m, *next = room.next;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) m[i] = ising_start(model, room.h[i]);
    __syncthreads();
    for (int32_t step = 0; step < model.steps; ++step) {
        each_row(n, [=](int64_t i) {
            const float mean = ising_mean(team, n, room.coupling + i * n, m);
            if (team.lane == 0) next[i] = ising_step(model, room.h[i], m[i], mean);
        });
        __syncthreads();
        float* const before = m;
        m = next;
        next = before;
    }
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) room.h[i] = ising_score(model, room.h[i], m[i]);
    __syncthreads();
}

// A candidate's place is the number of candidates that rank before it.
HOPFUSE_DEVICE void write_best(const Candidates& list, const float* score, int64_t k, int64_t* ids, float* scores) {
    for (int64_t i = threadIdx.x; i < list.n; i += blockDim.x) {
        int64_t rank = 0;
        for (int64_t j = 0; j < list.n; ++j) rank += ranks_before(score[j], list.ids[j], score[i], list.ids[i]) ? 1 : 0;
        if (rank >= k) continue;
        ids[rank] = list.ids[i];
        scores[rank] = score[i];
    }
    for (int64_t i = list.n + threadIdx.x; i < k; i += blockDim.x) {
        ids[i] = -1;
        scores[i] = bits_to_float(0xff800000u);
    }
}

}  // namespace hopfuse

// ising_f32: ranks each query's candidates by their mean field and keeps the best k; status as in query_status.h.
// Unit: a query; a block, which then takes another. Block: 256. Shared memory: <= 12 KiB. Registers: <= 64
// (occupancy 50 %). Bytes: for each pair of candidates the shorter of their rows, 4 of an entry (8 weighted), and as many
// steps of bisection in the longer; then 4 n^2 written, and read in every step.
extern "C" __global__ void __launch_bounds__(256, 4) ising_f32(const hopfuse::IsingArguments a) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(float, numbers);
    const Warp team{static_cast<int>(threadIdx.x % 32)};
    const int64_t width = a.width, k = a.k;
    const int64_t warps = blockDim.x / 32;
    const Room room{numbers, numbers + width, numbers + 2 * width, a.coupling_room + blockIdx.x * width * width,
                    a.shared_room + blockIdx.x * width * warps};
    for (int64_t b = blockIdx.x; b < a.batch; b += gridDim.x) {
        const Candidates list{a.counts[b], a.ids + b * width, a.scores + b * width};
        int outside = 0;
        for (int64_t i = threadIdx.x; i < list.n; i += blockDim.x)
            outside |= list.ids[i] < 0 || list.ids[i] >= a.graph.num_nodes ? 1 : 0;
        outside = __syncthreads_or(outside);
        if (threadIdx.x == 0) a.status[b] = outside != 0 ? status_document_outside : status_complete;
        if (threadIdx.x < 32 && list.n > 0) ising_field(team, list.scores, list.n, room.h);
        couple(team, a.graph, list, room);
        __syncthreads();
        settle(team, a.model, list.n, room);
        write_best(list, room.h, k, a.out_ids + b * k, a.out_scores + b * k);
        if (threadIdx.x == 0) a.out_counts[b] = list.n < k ? list.n : k;
        __syncthreads();
    }
}

HOPFUSE_KERNEL_TYPE(ising_f32, hopfuse::IsingKernel);
