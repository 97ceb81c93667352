// Selects the best hits by a block of threads: streams keys of hopfuse/topk_key.h past a running list. Device code.
#pragma once

#include "arguments/topk.h"
#include "hopfuse/device.h"
#include "hopfuse/integers.h"
#include "hopfuse/topk_key.h"

namespace hopfuse {

HOPFUSE_DEVICE void put_key(const KeyColumns& to, int64_t query, int64_t column, uint64_t key) {
    to.keys[query * to.stride + to.first + column] = key;
}

HOPFUSE_DEVICE void put_in_order(uint64_t* keys, int64_t low, int64_t high, bool descending) {
    const uint64_t a = keys[low], b = keys[high];
    if (descending ? a < b : a > b) {
        keys[low] = b;
        keys[high] = a;
    }
}

// The stages of a bitonic sort for runs of first_size .. last_size keys, as far as they stay within the `count` given keys
// (a power of two), which start at `origin` of the sequence that is sorted in descending order. A block has a power of two of
// warps, each with consecutive pairs: in the stages that compare near keys, a warp need not wait for others.
HOPFUSE_DEVICE void bitonic_stages(uint64_t* keys, int count, int64_t origin, int64_t first_size, int64_t last_size) {
    const int pairs = count / 2, shared_by = static_cast<int>(blockDim.x) / 32;
    const int own = pairs / shared_by > 32 ? pairs / shared_by : 32;
    const int first = static_cast<int>(threadIdx.x) / 32 * own, lane = static_cast<int>(threadIdx.x) % 32;
    const int end = first + own < pairs ? first + own : pairs;
    bool was_far = false;
    for (int64_t size = first_size; size <= last_size; size *= 2) {
        for (int distance = static_cast<int>(size < count ? size : count) / 2; distance > 0; distance /= 2) {
            const bool is_far = distance > own;
            if (is_far || was_far) __syncthreads();
            else __syncwarp();
            was_far = is_far;
            for (int pair = first + lane; pair < end; pair += 32) {
                const int low = 2 * pair - (pair & (distance - 1));
                put_in_order(keys, low, low + distance, ((origin + low) & size) == 0);
            }
        }
    }
    __syncthreads();
}

// Sorts buffer[0 .. held) in descending order, padded to a power of two.
HOPFUSE_DEVICE void sort_held(uint64_t* buffer, int held) {
    int count = 2;
    while (count < held) count *= 2;
    for (int i = held + static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) buffer[i] = 0;
    __syncthreads();
    bitonic_stages(buffer, count, 0, 2, count);
}

// Reads a thread's keys of a step, 0 beyond `end`. Sources whose loads would else wait for each other overload it.
template <class Source>
HOPFUSE_DEVICE void read_keys(const Source& source, int64_t first, int apart, int end,
                              uint64_t (&keys)[KEYS_PER_THREAD]) {
#pragma unroll
    for (int item = 0; item < KEYS_PER_THREAD; ++item) {
        const int64_t j = first + item * apart;
        keys[item] = j < end ? source.key(static_cast<int>(j)) : 0;
    }
}

// Streams source.key(begin .. end) past a list, which is empty at the start if `fresh`. The buffer holds the list and, after
// it, keys above its last one, and above `floor`, that are still to be sorted in. `room`, the size of the buffer, is a power of two and at least
// width + KEYS_PER_THREAD * blockDim.x.
template <class Source>
HOPFUSE_DEVICE void keep_best(const Source& source, int begin, int end, uint64_t* list, bool fresh, int width, int room,
                              uint64_t* buffer, int* num_waiting, uint64_t floor = 0) {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int step = KEYS_PER_THREAD * threads;
    for (int i = thread; i < width; i += threads) buffer[i] = fresh ? 0 : list[i];
    if (thread == 0) *num_waiting = 0;
    __syncthreads();
    uint64_t threshold = buffer[width - 1] > floor ? buffer[width - 1] : floor;
    for (int64_t at = begin; at < end; at += step) {
        uint64_t keys[KEYS_PER_THREAD];
        read_keys(source, at + thread, threads, end, keys);
#pragma unroll
        for (int item = 0; item < KEYS_PER_THREAD; ++item)
            if (keys[item] > threshold) buffer[width + atomicAdd(num_waiting, 1)] = keys[item];
        __syncthreads();
        const int waiting = *num_waiting;
        __syncthreads();
        const bool is_last = at + step >= end;
        if (waiting == 0 || (!is_last && width + waiting + step <= room)) continue;
        if (thread == 0) *num_waiting = 0;
        sort_held(buffer, width + waiting);
        threshold = buffer[width - 1] > floor ? buffer[width - 1] : floor;
    }
    for (int i = thread; i < width; i += threads) list[i] = buffer[i];
}

}  // namespace hopfuse
