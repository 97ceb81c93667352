#include "dense_topk.h"

#include "dense_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "hopfuse/query_status.h"

namespace hopfuse::device {

namespace {

constexpr double UNIT = 0x1p-24;
// The most dimensions for which the bound justifies a matrix product.
constexpr int32_t MOST_DIMENSIONS = 1 << 20;

// The bound of the relative error of this many float32 operations.
double gamma(double operations) { return operations * UNIT / (1 - operations * UNIT); }

// h of hopfuse/dense_topk.h: the error of a matrix unit's dot product over both norms.
double units_error(int32_t dim, DenseType type) {
    const double last_bit = type == DenseType::bfloat16 ? 0x1p-8 : 0x1p-11;
    const double lost = 0x1p-27 * std::sqrt(static_cast<double>(dim)), bits = last_bit * last_bit;
    const double split = type == DenseType::float32 ? 3 * bits + 2 * lost : bits + lost;
    const int32_t sums = (dim + PRODUCT_DEPTH - 1) / PRODUCT_DEPTH;
    return 1.01 * (2.02 * DENSE_STEP_ERROR + split + gamma(sums + 1));
}

float round_up(double value) {
    return std::nextafter(static_cast<float>(value), std::numeric_limits<float>::infinity());
}

// A batch on the device, with its filter and the arrays for its hits.
struct Batch {
    int64_t count;
    Array<float> vectors, norms;
    Array<int32_t> status;
    Array<unsigned short> parts;  // for a matrix product, or null
    DeviceFilter allowed;
    TopkHits hits;
};

// Returns the mask of the tile of `rows` rows from `first` on.
using TileMasks = std::function<RowMask(int64_t first, int64_t rows)>;

// A search for k hits, with k at most the number of allowed rows.
class Search {
public:
    Search(Queue& queue, const DeviceCorpus& corpus, const RowFilter& allowed, int64_t batch, int64_t k)
        : queue_(queue), corpus_(corpus), allowed_(allowed), bound_(dot_bound(corpus.dim(), corpus.type())), k_(k),
          width_(k + k / 8 + 32) {
        if (allowed.shared) shared_ = DeviceFilter::upload(queue, allowed, batch, corpus.rows());
    }

    // Writes the hits of queries begin .. end - 1 of the call, and reads them with their status if `reads`.
    DenseFound run(const Array<float>& queries, QueryRange range, const TopkHits& hits, bool reads) {
        const FilterPart part(allowed_, range.begin, range.end, corpus_.rows());
        const RowFilter& allowed = part.filter();
        const bool uses_codes = is_by_codes(allowed, range.count());
        const bool is_multiplied =
            !uses_codes && is_bound_worth_it(allowed) && range.count() > queue_.sizes().scored_at_once;
        const Batch batch = take(vectors_of(queries, range), range.count(), allowed, hits, is_multiplied);
        DenseFound found{hits};
        if (uses_codes) {
            by_codes(batch);
        } else if (!is_multiplied) {
            exhaustively(batch, allowed);
            if (!queue_.fixed()) found.rescored = allowed.total(range.count(), corpus_.rows());
            return found;
        } else {
            by_bound(batch);
        }
        if (queue_.fixed()) return found;
        std::vector<int64_t> rescored;
        if (reads) read_hits(hits, found, rescored);
        else std::tie(found.status, rescored) = queue_.read(hits.status, hits.rescored);
        found.rescored = std::accumulate(rescored.begin(), rescored.end(), int64_t{0});
        std::vector<int64_t> left;
        for (size_t i = 0; i < found.status.size(); ++i)
            if (found.status[i] == status_incomplete) left.push_back(static_cast<int64_t>(i));
        if (left.empty()) return found;
        found.rescored += widen(queries, range, left, hits);
        found.read = nullptr;
        return found;
    }

private:
    Array<float> vectors_of(const Array<float>& queries, QueryRange range) const {
        const auto dim = static_cast<size_t>(corpus_.dim());
        return queries.part(static_cast<size_t>(range.begin) * dim, static_cast<size_t>(range.count()) * dim);
    }

    void read_hits(const TopkHits& hits, DenseFound& found, std::vector<int64_t>& rescored) {
        const auto& [ids, scores, counts] = std::tie(hits.hits.ids, hits.hits.scores, hits.hits.counts);
        const void* const from[] = {ids.data(), scores.data(), counts.data(), hits.status.data(), hits.rescored.data()};
        const size_t nbytes[] = {ids.nbytes(), scores.nbytes(), counts.nbytes(), hits.status.nbytes(),
                                 hits.rescored.nbytes()};
        const Owner* const owners[] = {&ids.owner(), &scores.owner(), &counts.owner(), &hits.status.owner(),
                                       &hits.rescored.owner()};
        found.read = queue_.read_pinned(from, nbytes, found.begins, owners);
        found.status.resize(hits.status.size());
        rescored.resize(hits.rescored.size());
        std::memcpy(found.status.data(), found.read.get() + found.begins[3], nbytes[3]);
        std::memcpy(rescored.data(), found.read.get() + found.begins[4], nbytes[4]);
    }

    // Scores every row for the queries `left` of the range, which the bound cannot prove.
    int64_t widen(const Array<float>& queries, QueryRange range, const std::vector<int64_t>& left,
                  const TopkHits& hits) {
        const auto count = static_cast<int64_t>(left.size());
        std::vector<int64_t> chosen(left);
        for (int64_t& query : chosen) query += range.begin;
        const FilterPart part(allowed_, chosen, corpus_.rows());
        const Array<float> vectors = queue_.take_rows(queries, static_cast<size_t>(corpus_.dim()), chosen);
        const TopkHits found = TopkHits::empty(queue_, count, hits.hits.k);
        exhaustively(take(vectors, count, part.filter(), found, false), part.filter());
        const auto width = static_cast<size_t>(hits.hits.k);
        queue_.put_rows(hits.hits.ids, width, left, found.hits.ids);
        queue_.put_rows(hits.hits.scores, width, left, found.hits.scores);
        queue_.put_rows(hits.hits.counts, 1, left, found.hits.counts);
        queue_.put_rows(hits.status, 1, left, found.status);
        return part.filter().total(count, corpus_.rows());
    }

    bool has_short_lists(const RowFilter& allowed) const {
        return allowed.has_lists() && allowed.most_rows(corpus_.rows()) < corpus_.rows() / DENSE_SHORT_LIST;
    }

    bool is_by_codes(const RowFilter& allowed, int64_t count) const {
        const int64_t lists = !allowed.has_lists() ? 0 : allowed.shared ? 1 : count;
        return !has_short_lists(allowed) && is_scanned(queue_, corpus_, k_, lists);
    }

    // Whether candidates fit in shared memory and are fewer than the allowed rows.
    bool is_bound_worth_it(const RowFilter& allowed) const {
        return width_ <= queue_.sizes().widest && width_ < allowed.most_rows(corpus_.rows()) &&
               !has_short_lists(allowed) && corpus_.dim() <= MOST_DIMENSIONS;
    }

    Batch take(Array<float> vectors, int64_t count, const RowFilter& allowed, const TopkHits& hits,
               bool is_multiplied) {
        auto [norms, status, parts] = queue_.arrays<float, int32_t, unsigned short>(
            count, count, is_multiplied ? count * query_parts_size(corpus_.dim()) : 0);
        const QueryParts made{is_multiplied ? parts.data() : nullptr, corpus_.type() == DenseType::bfloat16 ? 1 : 0,
                              bound_.norm_floor};
        check_queries(queue_, vectors, count, corpus_.dim(), corpus_.is_cosine(), norms, status, made);
        return {count, std::move(vectors),
                norms, status,
                parts, allowed.shared ? shared_ : DeviceFilter::upload(queue_, allowed, count, corpus_.rows()),
                hits};
    }

    void by_codes(const Batch& batch) {
        const TileMasks mask_of = tile_masks(batch, corpus_.rows());
        const RowMask mask = mask_of(0, corpus_.rows());
        scan_codes(queue_, corpus_, vectors_of(batch), batch.status, mask, k_, batch.hits);
    }

    // ---- With the bound

    // Writes the hits and status of each query, and the number of candidates scored.
    void by_bound(const Batch& batch) {
        const int64_t tile = tile_rows(queue_, batch.count, corpus_.rows());
        const Array<float> scores = queue_.empty<float>(static_cast<size_t>(batch.count * tile));
        Lists lists(queue_, batch.count, split_count(queue_, batch.count, tile), width_);
        const TileMasks mask_of = tile_masks(batch, tile);
        each_tile(corpus_.rows(), tile, [&](int64_t first, int64_t rows) {
            multiply(batch, first, rows, scores);
            lists.select(scores, rows, first, batch.norms, corpus_.norms(), corpus_.is_cosine(), bound_,
                         mask_of(first, rows));
        });
        rank_candidates(batch, lists.merged());
    }

    // Writes the dot products of a tile, (queries, rows), with errors that the bound covers.
    void multiply(const Batch& batch, int64_t first, int64_t rows, const Array<float>& out) {
        const Grid grid{blocks(rows, PRODUCT_ROWS) * blocks(batch.count, PRODUCT_QUERIES), PRODUCT_THREADS};
        corpus_.with_rows([&](const auto& kernels, const auto& vectors) {
            using Row = std::remove_cvref_t<decltype(*vectors)>;  // stated, since Clang 14 deduces none of an aggregate
            const ProductRows<Row> given{vectors + first * corpus_.dim(), corpus_.norms() + first, rows};
            queue_.launch(kernels.product, grid, given, vectors_of(batch), batch.parts, bound_.norm_floor, out);
        });
    }

    void rank_candidates(const Batch& batch, const Array<uint64_t>& bounds) {
        const int64_t length = power_of_two(width_);
        const Array<uint64_t> keys = queue_.empty<uint64_t>(static_cast<size_t>(batch.count * length));
        const ListedRows candidates{bounds, static_cast<int32_t>(width_), nullptr, nullptr, 0, 0};
        rescore(batch, candidates, {keys, length, 0, static_cast<int32_t>(length)});
        Selection selection(queue_, k_, batch.status, batch.hits);
        const bool sorts = length <= queue_.sizes().sort_chunk;
        if (!sorts) selection.sort(keys, length);
        selection.emit(keys, length, sorts, bounds, width_);
    }

    TileMasks tile_masks(const Batch& batch, int64_t tile) {
        const DeviceFilter& allowed = batch.allowed;
        if (!allowed.indptr)
            return [&allowed, n = corpus_.rows()](int64_t first, int64_t) {
                return RowMask{allowed.mask, allowed.shared ? 0 : n, first};
            };
        const int64_t lists = allowed.shared ? 1 : batch.count;
        const Array<uint8_t> mask = queue_.empty<uint8_t>(static_cast<size_t>(lists * tile));
        return [this, &allowed, lists, mask](int64_t first, int64_t rows) {
            mask_of_ids(queue_, allowed, lists, first, rows, mask);
            return RowMask{mask, allowed.shared ? 0 : rows, 0};
        };
    }

    // ---- Every allowed row

    void exhaustively(const Batch& batch, const RowFilter& allowed) {
        Selection selection(queue_, k_, batch.status, batch.hits);
        selection.of_all(allowed.most_rows(corpus_.rows()),
                         [&](int64_t first, int64_t rows, const KeyColumns& out) { score(batch, first, rows, out); });
    }

    // Writes the canonical keys of rows, or of positions in id lists, from `first` on.
    void score(const Batch& batch, int64_t first, int64_t rows, const KeyColumns& out) {
        const DeviceFilter& allowed = batch.allowed;
        if (allowed.indptr) {
            rescore(batch, {nullptr, 0, allowed.indptr, allowed.ids, allowed.shared ? 1 : 0, first}, out);
            return;
        }
        const RowMask mask{allowed.mask, allowed.shared ? 0 : corpus_.rows(), first};
        corpus_.with_rows([&](const auto& kernels, const auto& vectors) {
            queue_.launch(kernels.score, scoring_grid(out.columns, blocks(batch.count, QUERIES_PER_ROW)),
                          vectors + first * corpus_.dim(), corpus_.norms() + first, static_cast<int>(rows), first,
                          vectors_of(batch), mask, out);
        });
    }

    void rescore(const Batch& batch, const ListedRows& listed, const KeyColumns& out) {
        const Grid grid{batch.count * blocks(out.columns, RESCORE_ROWS), RESCORE_THREADS};
        corpus_.with_rows([&](const auto& kernels, const auto& vectors) {
            queue_.launch(kernels.rescore, grid, vectors, corpus_.norms(), vectors_of(batch), listed, out);
        });
    }

    QueryVectors vectors_of(const Batch& batch) const {
        return {batch.vectors, batch.norms, static_cast<int32_t>(batch.count), corpus_.dim(),
                corpus_.is_cosine() ? 1 : 0};
    }

    Queue& queue_;
    const DeviceCorpus& corpus_;
    const RowFilter& allowed_;
    DotBound bound_;
    // More candidates than k, because rounding may have moved rows whose scores are within the bound of the k-th.
    int64_t k_, width_;
    DeviceFilter shared_;
};

}  // namespace

// Of float32 rows, the larger one of the bounds of both arithmetics.
DotBound dot_bound(int32_t dim, DenseType type) {
    const double n = dim + 8.0, own = gamma(n), units = units_error(dim, type);
    const double product = type == DenseType::float32 ? std::max(own, units) : units;
    const double slack = 1.01 * (own + product + 8 * UNIT * (1 + own + product)) * ((1 + own) * (1 + own));
    return {round_up(slack), round_up(std::sqrt(n) * 0x1p-74), round_up(8 * n * 0x1p-126)};
}

DenseFound dense_topk(Queue& queue, const std::shared_ptr<const DeviceCorpus>& corpus, const Array<float>& queries,
                      int64_t batch, int64_t k, const RowFilter& allowed, bool reads) {
    queue.keep(corpus);
    const int64_t kept = std::min(k, allowed.most_rows(corpus->rows()));
    if (batch == 0 || kept == 0) {
        const TopkHits none = TopkHits::none(queue, batch, k);
        if (batch > 0) {
            const Array<float> norms = queue.empty<float>(static_cast<size_t>(batch));
            check_queries(queue, queries, batch, corpus->dim(), corpus->is_cosine(), norms, none.status);
        }
        return {none};
    }
    const TopkHits hits = TopkHits::empty(queue, batch, k);
    Search search(queue, *corpus, allowed, batch, kept);
    const std::vector<QueryRange> batches = query_batches(queue, batch, kept, corpus->rows());
    if (batches.size() == 1) return search.run(queries, batches[0], hits, reads);
    DenseFound found{hits};
    for (const QueryRange& range : batches)
        found.rescored += search.run(queries, range, hits.rows(range.begin, range.end), false).rescored;
    return found;
}

}  // namespace hopfuse::device
