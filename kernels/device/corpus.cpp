#include "corpus.h"

#include <algorithm>

namespace hopfuse::device {

namespace {

constexpr KernelOf<DenseQueriesKernel> queries_kernel{{"dense_topk", "dense_queries_f32"}};
constexpr KernelOf<DenseMaskIdsKernel> mask_ids_kernel{{"dense_topk", "dense_mask_ids"}};

template <class T>
std::span<const T> span_of(const void* data, int64_t size) {
    return {static_cast<const T*>(data), static_cast<size_t>(size)};
}

int64_t code_tiles(int64_t rows) { return blocks(rows, CODE_ROWS); }

// The steps of 32 dimensions, a multiple of 2.
int32_t code_steps(int32_t dim) { return (dim + CODE_ALIGNMENT - 1) / CODE_ALIGNMENT * (CODE_ALIGNMENT / CODE_DEPTH); }

// Words of the codes, and padded rows.
std::pair<int64_t, int64_t> code_sizes(int64_t rows, int32_t dim) {
    const int64_t tiles = code_tiles(rows);
    return {tiles * code_steps(dim) * (CODE_ROWS * CODE_DEPTH / 4), tiles * CODE_ROWS};
}

}  // namespace

size_t code_bytes(int64_t rows, int32_t dim) {
    const auto [words, padded] = code_sizes(rows, dim);
    return sizeof(uint32_t) * static_cast<size_t>(words) + 3 * sizeof(float) * static_cast<size_t>(padded);
}

DeviceCorpus::DeviceCorpus(Queue& queue, const DenseVectors& vectors)
    : rows_(vectors.count), dim_(vectors.dim), type_(vectors.type), cosine_(vectors.cosine) {
    const int64_t size = rows_ * dim_;
    const size_t each = type_ == DenseType::float32 ? sizeof(float) : sizeof(unsigned short);
    queue.device().require(each * static_cast<size_t>(size) + sizeof(float) * static_cast<size_t>(rows_), "the corpus");
    const Queue::Resident resident(queue);
    if (type_ == DenseType::float32) wide_ = std::get<0>(queue.upload(span_of<float>(vectors.data, size)));
    else narrow_ = std::get<0>(queue.upload(span_of<unsigned short>(vectors.data, size)));
    norms_ = queue.empty<float>(static_cast<size_t>(rows_));
    with_rows([&](const auto& kernels, const auto& there) {
        queue.launch(kernels.norms, scoring_grid(rows_, 1), there, rows_, static_cast<int>(dim_), norms_);
    });
    Device& device = queue.device();
    if (!device.makes_codes() || rows_ == 0 || dim_ > DENSE_CODED_DIM) return;
    if (each * static_cast<size_t>(size) < static_cast<size_t>(device.sizes.coded_bytes)) return;
    if (device.free_bytes() / 2 >= code_bytes(rows_, dim_)) encode(queue);
}

void DeviceCorpus::encode(Queue& queue) {
    const auto [words, padded] = code_sizes(rows_, dim_);
    std::tie(codes_, scale_, error_, norm_code_) =
        queue.arrays<uint32_t, float, float, float>(words, padded, padded, padded);
    with_rows([&](const auto& kernels, const auto& there) {
        queue.launch(kernels.encode, {code_tiles(rows_), CODE_ROWS * LANES}, there, static_cast<int>(dim_),
                     cosine_ ? 1 : 0, norms_, codes());
    });
}

RowCodes DeviceCorpus::codes() const { return {codes_, scale_, error_, norm_code_, rows_, code_steps(dim_)}; }

int64_t RowFilter::most_rows(int64_t rows) const {
    if (!has_lists()) return rows;
    int64_t most = 0;
    for (size_t i = 1; i < indptr.size(); ++i) most = std::max(most, indptr[i] - indptr[i - 1]);
    return most;
}

int64_t RowFilter::total(int64_t queries, int64_t rows) const {
    const int64_t each = shared ? queries : 1;
    if (has_lists()) return each * indptr.back();
    if (mask == nullptr) return queries * rows;
    const uint8_t* const end = mask + (shared ? 1 : queries) * rows;
    return each * (end - mask - std::count(mask, end, uint8_t{0}));
}

FilterPart::FilterPart(const RowFilter& whole, int64_t begin, int64_t end, int64_t rows) : filter_(whole) {
    if (whole.shared) return;
    if (whole.mask != nullptr) filter_.mask = whole.mask + begin * rows;
    if (!whole.has_lists()) return;
    const int64_t first = whole.indptr[static_cast<size_t>(begin)];
    for (int64_t query = begin; query <= end; ++query)
        indptr_.push_back(whole.indptr[static_cast<size_t>(query)] - first);
    filter_.indptr = indptr_;
    filter_.ids = whole.ids + first;
}

FilterPart::FilterPart(const RowFilter& whole, std::span<const int64_t> queries, int64_t rows) : filter_(whole) {
    if (whole.shared) return;
    if (whole.mask != nullptr) {
        mask_.reserve(queries.size() * static_cast<size_t>(rows));
        for (const int64_t query : queries)
            mask_.insert(mask_.end(), whole.mask + query * rows, whole.mask + (query + 1) * rows);
        filter_.mask = mask_.data();
    } else if (whole.has_lists()) {
        indptr_.push_back(0);
        for (const int64_t query : queries) {
            const auto at = static_cast<size_t>(query);
            ids_.insert(ids_.end(), whole.ids + whole.indptr[at], whole.ids + whole.indptr[at + 1]);
            indptr_.push_back(static_cast<int64_t>(ids_.size()));
        }
        filter_.indptr = indptr_;
        filter_.ids = ids_.data();
    }
}

DeviceFilter DeviceFilter::upload(Queue& queue, const RowFilter& filter, int64_t queries, int64_t rows) {
    DeviceFilter there;
    there.shared = filter.shared;
    if (filter.has_lists())
        std::tie(there.indptr, there.ids) =
            queue.upload(filter.indptr, span_of<int64_t>(filter.ids, filter.indptr.back()));
    else if (filter.mask != nullptr)
        there.mask = std::get<0>(queue.upload(span_of<uint8_t>(filter.mask, (filter.shared ? 1 : queries) * rows)));
    return there;
}

void check_queries(Queue& queue, const Array<float>& queries, int64_t batch, int32_t dim, bool cosine,
                   const Array<float>& norms, const Array<int32_t>& status, const QueryParts& parts) {
    queue.launch(queries_kernel, {batch, QUERY_THREADS}, queries, static_cast<int>(dim), cosine ? 1 : 0, norms, status,
                 parts);
}

void mask_of_ids(Queue& queue, const DeviceFilter& filter, int64_t lists, int64_t first_row, int64_t rows,
                 const Array<uint8_t>& mask) {
    queue.launch(mask_ids_kernel, {lists, DENSE_THREADS}, filter.indptr, filter.ids, first_row, static_cast<int>(rows),
                 mask);
}

Grid scoring_grid(int64_t columns, int64_t query_groups) {
    return {blocks(columns, DENSE_BLOCK_ROWS) * query_groups, DENSE_THREADS};
}

}  // namespace hopfuse::device
