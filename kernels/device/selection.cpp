#include "selection.h"

#include <algorithm>

#include "hopfuse/query_status.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<DenseSelectKernel> select_kernel{{"topk", "dense_select_f32"}};
constexpr KernelOf<DenseKeepKernel> topk_keep_kernel{{"topk", "dense_keep_u64"}};
constexpr KernelOf<DenseSortChunkKernel> sort_chunk_kernel{{"topk", "dense_sort_chunk_u64"}};
constexpr KernelOf<DenseSortStepKernel> sort_step_kernel{{"topk", "dense_sort_step_u64"}};
constexpr KernelOf<TopkEmitKernel> emit_kernel{{"topk", "topk_emit"}};

// The number of keys of a query sorted together: its best k and a tile.
int64_t sort_length(const Sizes& sizes, int64_t k, int64_t rows) {
    return power_of_two(k + std::min(std::max<int64_t>(rows, 1), std::max(sizes.tile_rows, k)));
}

}  // namespace

TopkHits TopkHits::empty(Queue& queue, int64_t batch, int64_t k) {
    const int64_t size = batch * k;
    auto [ids, scores, counts, status, rescored] =
        queue.arrays<int64_t, float, int64_t, int32_t, int64_t>(size, size, batch, batch, batch);
    return {{batch, k, ids, scores, counts}, status, rescored};
}

TopkHits TopkHits::none(Queue& queue, int64_t batch, int64_t k) {
    const std::vector<int32_t> status(static_cast<size_t>(batch), status_complete);
    const std::vector<int64_t> rescored(static_cast<size_t>(batch), 0);
    const HitArrays hits = no_hits(queue, batch, k);
    auto [there_status, there_rescored] =
        queue.upload(std::span<const int32_t>(status), std::span<const int64_t>(rescored));
    return {hits, there_status, there_rescored};
}

TopkHits TopkHits::rows(int64_t begin, int64_t end) const {
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    const auto k = static_cast<size_t>(hits.k);
    return {{end - begin, hits.k, hits.ids.part(first * k, count * k), hits.scores.part(first * k, count * k),
             hits.counts.part(first, count)},
            status.part(first, count),
            rescored.part(first, count)};
}

std::vector<QueryRange> query_batches(Queue& queue, int64_t batch, int64_t k, int64_t rows) {
    const Sizes& sizes = queue.sizes();
    int64_t size = sizes.batch;
    if (k > sizes.widest) size = std::min(size, std::max<int64_t>(1, sizes.sort_keys / sort_length(sizes, k, rows)));
    std::vector<QueryRange> found;
    for (int64_t begin = 0; begin < batch; begin += size) found.push_back({begin, std::min(begin + size, batch)});
    return found;
}

int64_t tile_rows(Queue& queue, int64_t queries, int64_t rows) {
    const Sizes& sizes = queue.sizes();
    return std::max<int64_t>(1, std::min(std::max(sizes.tile_rows, sizes.tile_scores / queries), rows));
}

int64_t split_count(Queue& queue, int64_t queries, int64_t columns) {
    const Sizes& sizes = queue.sizes();
    const int64_t blocks =
        sizes.split_blocks > 0 ? sizes.split_blocks : int64_t{8} * queue.device().properties().multiprocessors;
    return std::max<int64_t>(1, std::min({columns / sizes.split_rows, sizes.most_splits, blocks / queries}));
}

int64_t power_of_two(int64_t least) {
    int64_t power = 2;
    while (power < least) power *= 2;
    return power;
}

// ---- Lists -----------------------------------------------------------------------------------------------------------

Lists::Lists(Queue& queue, int64_t queries, int64_t splits, int64_t width)
    : queue_(queue), queries_(queries), splits_(splits), width_(width),
      room_(power_of_two(width + std::max<int64_t>(width, int64_t{KEYS_PER_THREAD} * LIST_THREADS))) {
    std::tie(keys_, merged_) =
        queue.arrays<uint64_t, uint64_t>(queries * splits * width, splits > 1 ? queries * width : 0);
}

RunningLists Lists::next(const Array<uint64_t>& keys, int64_t splits, bool fresh) const {
    return {static_cast<int32_t>(splits), keys, fresh ? 1 : 0, static_cast<int32_t>(width_),
            static_cast<int32_t>(room_)};
}

Grid Lists::grid(int64_t splits) const {
    return {queries_ * splits, LIST_THREADS, sizeof(uint64_t) * static_cast<size_t>(room_)};
}

void Lists::select(const Array<float>& scores, int64_t rows, int64_t first_row, const Array<float>& query_norm,
                   const Array<float>& row_norm, bool cosine, const DotBound& bound, const RowMask& mask) {
    queue_.launch(select_kernel, grid(splits_), scores, static_cast<int>(rows), first_row, query_norm, row_norm,
                  cosine ? 1 : 0, bound, mask, next(keys_, splits_, fresh_));
    fresh_ = false;
}

void Lists::keep(const Array<uint64_t>& keys, int64_t columns) {
    keep(keys, columns, keys_, splits_, fresh_);
    fresh_ = false;
}

void Lists::keep(const Array<uint64_t>& from, int64_t columns, const Array<uint64_t>& keys, int64_t splits,
                 bool fresh) {
    queue_.launch(topk_keep_kernel, grid(splits), from, columns, static_cast<int>(columns), next(keys, splits, fresh));
}

Array<uint64_t> Lists::merged() {
    if (fresh_) keep(queue_.empty<uint64_t>(1), 0);  // no keys yet
    if (splits_ == 1) return keys_;
    keep(keys_, splits_ * width_, merged_, 1, true);
    return merged_;
}

// ---- Selection -------------------------------------------------------------------------------------------------------

Selection::Selection(Queue& queue, int64_t k, Array<int32_t> status, TopkHits hits)
    : queue_(queue), k_(k), queries_(static_cast<int64_t>(status.size())), status_(std::move(status)),
      hits_(std::move(hits)) {}

void Selection::of_all(int64_t rows, const MakeKeys& make_keys) {
    if (k_ <= queue_.sizes().widest) keep_all(rows, make_keys);
    else sort_all(rows, make_keys);
}

// Selects tile by tile, with running lists.
void Selection::keep_all(int64_t rows, const MakeKeys& make_keys) {
    const int64_t columns = tile_rows(queue_, queries_, rows);
    const Array<uint64_t> keys = queue_.empty<uint64_t>(static_cast<size_t>(queries_ * columns));
    Lists lists(queue_, queries_, split_count(queue_, queries_, columns), k_);
    each_tile(rows, columns, [&](int64_t first, int64_t count) {
        make_keys(first, count, {keys, columns, 0, static_cast<int32_t>(columns)});
        lists.keep(keys, columns);
    });
    emit(lists.merged(), k_);
}

// Selects by sorting each tile together with the best k so far.
void Selection::sort_all(int64_t rows, const MakeKeys& make_keys) {
    const int64_t length = sort_length(queue_.sizes(), k_, rows), columns = length - k_;
    const Array<uint64_t> keys = queue_.zeros<uint64_t>(static_cast<size_t>(queries_ * length));
    each_tile(rows, columns, [&](int64_t first, int64_t count) {
        make_keys(first, count, {keys, length, k_, static_cast<int32_t>(columns)});
        sort(keys, length);
    });
    emit(keys, length);
}

void Selection::sort(const Array<uint64_t>& keys, int64_t length) {
    const int64_t chunk = std::min(length, queue_.sizes().sort_chunk), pairs = queries_ * length / 2;
    sort_chunks(keys, length, chunk, 2, chunk);
    for (int64_t size = 2 * chunk; size <= length; size *= 2) {
        for (int64_t distance = size / 2; distance >= chunk; distance /= 2)
            queue_.launch(sort_step_kernel, {blocks(pairs, SORT_THREADS), SORT_THREADS}, keys, pairs, length, size,
                          distance);
        sort_chunks(keys, length, chunk, size, size);
    }
}

void Selection::sort_chunks(const Array<uint64_t>& keys, int64_t length, int64_t chunk, int64_t first, int64_t last) {
    const Grid grid{queries_ * length / chunk, SORT_THREADS, sizeof(uint64_t) * static_cast<size_t>(chunk)};
    queue_.launch(sort_chunk_kernel, grid, keys, length, static_cast<int>(chunk), first, last);
}

void Selection::emit(const Array<uint64_t>& keys, int64_t stride, bool sorts, const Array<uint64_t>& bounds,
                     int64_t width, const Array<uint32_t>& held) {
    const size_t shared = sorts ? sizeof(uint64_t) * static_cast<size_t>(stride) : 16;
    const HitArrays& hits = hits_.hits;
    const SelectedHits out{hits.ids, hits.scores, hits.counts, hits_.status};
    queue_.launch(emit_kernel, {queries_, LIST_THREADS, shared}, keys, stride, sorts ? 1 : 0, k_, hits.k, bounds,
                  static_cast<int>(width), held, status_, out, hits_.rescored);
}

}  // namespace hopfuse::device
