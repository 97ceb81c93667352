// Selection of the best keys of each query, with the kernels of kernels/cuda/topk.cu.
#pragma once

#include <functional>

#include "arguments/topk.h"
#include "hits.h"

namespace hopfuse::device {

// Hits on the device, with each query's status (hopfuse/query_status.h).
struct TopkHits {
    HitArrays hits;
    Array<int32_t> status;  // (B,)
    // (B,) candidates scored for each query where a bound selects them, otherwise uninitialised.
    Array<int64_t> rescored;

    static TopkHits empty(Queue& queue, int64_t batch, int64_t k);
    // Empty lists, of queries that are complete.
    static TopkHits none(Queue& queue, int64_t batch, int64_t k);
    // Of queries begin .. end - 1, sharing the memory.
    TopkHits rows(int64_t begin, int64_t end) const;
};

// Queries begin .. end - 1.
struct QueryRange {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
};

// The queries that are searched together: those of each of the returned ranges.
std::vector<QueryRange> query_batches(Queue& queue, int64_t batch, int64_t k, int64_t rows);

// The rows of a tile of scores or keys of this many queries, at least one.
int64_t tile_rows(Queue& queue, int64_t queries, int64_t rows);

// The number of blocks that share a query's tile.
int64_t split_count(Queue& queue, int64_t queries, int64_t columns);

// Calls take(first, count) for each tile of at most `tile` rows.
template <class Take>
void each_tile(int64_t rows, int64_t tile, const Take& take) {
    for (int64_t first = 0; first < rows; first += tile) take(first, rows - first < tile ? rows - first : tile);
}

// The least power of two that is at least `least`, and at least 2.
int64_t power_of_two(int64_t least);

// Running lists, (queries, splits, width), of the best keys so far.
class Lists {
public:
    Lists(Queue& queue, int64_t queries, int64_t splits, int64_t width);

    // Merges the upper bounds of a tile's scores (queries, rows) into the lists.
    void select(const Array<float>& scores, int64_t rows, int64_t first_row, const Array<float>& query_norm,
                const Array<float>& row_norm, bool cosine, const DotBound& bound, const RowMask& mask);
    // Merges keys (queries, columns) into the lists.
    void keep(const Array<uint64_t>& keys, int64_t columns);
    // Merges the splits into one list per query, (queries, width).
    Array<uint64_t> merged();

private:
    RunningLists next(const Array<uint64_t>& keys, int64_t splits, bool fresh) const;
    Grid grid(int64_t splits) const;
    void keep(const Array<uint64_t>& from, int64_t columns, const Array<uint64_t>& keys, int64_t splits, bool fresh);

    Queue& queue_;
    int64_t queries_, splits_, width_, room_;
    Array<uint64_t> keys_, merged_;
    bool fresh_ = true;
};

// Selection of the best `k` rows of each query, at most all of them; keys are made tile by tile.
class Selection {
public:
    // Writes the keys of `rows` rows from `first` on, 0 for none, to columns of each query.
    using MakeKeys = std::function<void(int64_t first, int64_t rows, const KeyColumns& out)>;

    // `status` holds errors of queries found earlier.
    Selection(Queue& queue, int64_t k, Array<int32_t> status, TopkHits hits);

    // Selects among all rows and writes the hits.
    void of_all(int64_t rows, const MakeKeys& make_keys);
    // Sorts each query's keys, a power of two of them, descending.
    void sort(const Array<uint64_t>& keys, int64_t length);
    // Writes the first keys of each query as hits; see topk_emit for the arguments.
    void emit(const Array<uint64_t>& keys, int64_t stride, bool sorts = false, const Array<uint64_t>& bounds = {},
              int64_t width = 0, const Array<uint32_t>& held = {});

private:
    void keep_all(int64_t rows, const MakeKeys& make_keys);
    void sort_all(int64_t rows, const MakeKeys& make_keys);
    void sort_chunks(const Array<uint64_t>& keys, int64_t length, int64_t chunk, int64_t first, int64_t last);

    Queue& queue_;
    int64_t k_, queries_;
    Array<int32_t> status_;
    TopkHits hits_;
};

}  // namespace hopfuse::device
