#include "dense_scan.h"

#include <algorithm>
#include <numeric>

namespace hopfuse::device {

namespace {

constexpr KernelOf<DenseEncodeQueriesKernel> encode_queries_kernel{{"dense_codes", "dense_encode_queries"}};
constexpr KernelOf<DenseRaiseKernel> raise_kernel{{"dense_codes", "dense_raise"}};

// The scan of up to this many queries at a time.
struct CodesKernel {
    int64_t queries;
    KernelOf<DenseScanKernel> kernel;
};
constexpr CodesKernel codes_kernels[] = {{4, {{"dense_codes", "dense_scan_q4"}}},
                                         {16, {{"dense_codes", "dense_scan_q16"}}},
                                         {32, {{"dense_codes", "dense_scan_q32"}}}};

// A list has room for this many times the k rows that a threshold leaves.
constexpr int64_t ROOM = 16;
// By how much bounds may widen what the threshold of a sample leaves of the rest.
constexpr int64_t WIDENING = 8;
// The most blocks of a launch that ranks few queries, and the rows of a full list that 16 threads of theirs rank.
constexpr int64_t RANK_BLOCKS = 2048, RANKED = 4;

// A number near the golden section of `parts` that has no common divisor with it: its multiples spread evenly.
int64_t sample_step(int64_t parts) {
    auto step = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(parts) * 0.6180339887498949));
    while (std::gcd(step, parts) != 1) ++step;
    return step;
}

}  // namespace

bool is_scanned(Queue& queue, const DeviceCorpus& corpus, int64_t k, int64_t lists) {
    const Sizes& sizes = queue.sizes();
    return corpus.has_codes() && k <= sizes.scanned_rows / ROOM && lists <= sizes.workspace / corpus.rows();
}

void scan_codes(Queue& queue, const DeviceCorpus& corpus, const QueryVectors& vectors, const Array<int32_t>& status,
                const RowMask& mask, int64_t k, const TopkHits& hits) {
    const int64_t batch = vectors.batch, room = queue.sizes().scanned_rows, tiles = blocks(batch, CODE_QUERIES);
    const RowCodes rows = corpus.codes();
    auto [keys, lower, count, bounds, codes] = queue.arrays<uint64_t, uint32_t, uint32_t, QueryBounds, uint32_t>(
        batch * room, batch * room, batch, batch, tiles * rows.steps * (2 * CODE_QUERIES * CODE_DEPTH / 4));
    const ScannedRows found{keys, lower, count, bounds, static_cast<uint32_t>(room)};
    const QueryCodes queries{codes, static_cast<int32_t>(batch), rows.steps};
    queue.launch(encode_queries_kernel, {tiles, 32 * CODE_QUERIES}, vectors, status, queries, found);

    const CodesKernel* scan = codes_kernels;
    while (scan + 1 != std::end(codes_kernels) && scan->queries < batch) ++scan;
    const int64_t all = blocks(corpus.rows(), SCAN_ROWS), growth = std::max<int64_t>(2, room / (WIDENING * k));
    const int64_t step = sample_step(all);
    for (int64_t first = 0, end = std::max<int64_t>(1, room / SCAN_ROWS); first < all; first = end, end *= growth) {
        end = std::min(end, all);
        queue.launch(scan->kernel, {blocks(end - first, CODES_WARPS) * blocks(batch, scan->queries), CODES_THREADS},
                     rows, queries, ScanOrder{first, end, step, all}, mask, found);
        queue.launch(raise_kernel, {batch, RAISE_THREADS}, found, static_cast<int>(k));
    }
    const int64_t parts = std::clamp<int64_t>(RANK_BLOCKS / batch, 1, blocks(room, RANKED * DENSE_BLOCK_ROWS));
    corpus.with_rows([&](const auto& kernels, const auto& there) {
        queue.launch(kernels.rank, {batch * parts, DENSE_THREADS}, there, corpus.norms(), vectors,
                     static_cast<int>(parts), found);
    });
    Selection(queue, k, status, hits).emit(keys, room, true, {}, 0, count);
}

}  // namespace hopfuse::device
