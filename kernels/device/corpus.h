// A corpus on a device, which dense search and similarity read, and filters of its rows.
#pragma once

#include "arguments/dense_codes.h"
#include "arguments/dense_topk.h"
#include "arguments/similarity_f32.h"
#include "device.h"
#include "hopfuse/dense_topk.h"

namespace hopfuse::device {

// The kernels of a type of rows: float, or the bits of float16 or of bfloat16 numbers.
template <class Row>
struct RowKernels {
    KernelOf<DenseNormsKernel<Row>> norms;
    KernelOf<DenseProductKernel<Row>> product;
    KernelOf<DenseScoreKernel<Row>> score;
    KernelOf<DenseRescoreKernel<Row>> rescore;
    KernelOf<DenseEncodeKernel<Row>> encode;
    KernelOf<DenseRankKernel<Row>> rank;
    KernelOf<SimilarityCosinesKernel<Row>> cosines;
};

// The most rows of a corpus on a device: those that a key can number.
constexpr int64_t MOST_ROWS = 0x7fffffff;

// The bytes of the codes of a corpus and of their bounds. Codes are padded to whole tiles.
size_t code_bytes(int64_t rows, int32_t dim);

// Resident: made once, and read by any queue.
class DeviceCorpus {
public:
    // `vectors.data` is on the host. The corpus has codes if it is large enough for them to save time (Sizes::coded_bytes), and if
    // the device has room for as many bytes again besides.
    DeviceCorpus(Queue& queue, const DenseVectors& vectors);

    int64_t rows() const { return rows_; }
    int32_t dim() const { return dim_; }
    DenseType type() const { return type_; }
    bool is_cosine() const { return cosine_; }
    const Array<float>& norms() const { return norms_; }  // (rows,) canonical
    bool has_codes() const { return codes_.size() > 0; }
    RowCodes codes() const;

    // Calls f(kernels, vectors) with the kernels of the rows' type and the vectors, (rows, dim).
    template <class F>
    auto with_rows(const F& f) const;

private:
    int64_t rows_;
    int32_t dim_;
    DenseType type_;
    bool cosine_;
    Array<float> wide_;             // of float32 rows
    Array<unsigned short> narrow_;  // of the others
    Array<float> norms_;
    Array<uint32_t> codes_;  // or empty, as the next three
    Array<float> scale_, error_, norm_code_;

    void encode(Queue& queue);
};

// Which rows may be hits: all, those of a mask, or those of id lists; for all queries or for each. On the host.
struct RowFilter {
    const uint8_t* mask = nullptr;    // (N,) or (B, N)
    std::span<const int64_t> indptr;  // (2,) or (B + 1,), or empty
    const int64_t* ids = nullptr;     // ascending
    bool shared = true;

    bool has_lists() const { return !indptr.empty(); }
    // The most rows that a query may use, of `rows`.
    int64_t most_rows(int64_t rows) const;
    // The number of allowed rows, summed over all queries.
    int64_t total(int64_t queries, int64_t rows) const;
};

// The filter of some of the queries, which holds what it cannot share with the whole one.
class FilterPart {
public:
    FilterPart(const RowFilter& whole, int64_t begin, int64_t end, int64_t rows);  // queries begin .. end - 1
    FilterPart(const RowFilter& whole, std::span<const int64_t> queries, int64_t rows);
    const RowFilter& filter() const { return filter_; }

private:
    std::vector<uint8_t> mask_;
    std::vector<int64_t> indptr_, ids_;
    RowFilter filter_;
};

// A filter on the device.
struct DeviceFilter {
    Array<uint8_t> mask;
    Array<int64_t> indptr, ids;
    bool shared = true;

    // Of this many queries and rows.
    static DeviceFilter upload(Queue& queue, const RowFilter& filter, int64_t queries, int64_t rows);
};

// Writes the canonical norms of the queries (batch, dim), their errors to `status`, and their parts, if any are asked for.
void check_queries(Queue& queue, const Array<float>& queries, int64_t batch, int32_t dim, bool cosine,
                   const Array<float>& norms, const Array<int32_t>& status, const QueryParts& parts = {});

// Converts id lists to a mask (lists, rows) of the rows first_row .. first_row + rows.
void mask_of_ids(Queue& queue, const DeviceFilter& filter, int64_t lists, int64_t first_row, int64_t rows,
                 const Array<uint8_t>& mask);

// The grid of a kernel that scores columns canonically, for groups of queries.
Grid scoring_grid(int64_t columns, int64_t query_groups);

// ---- Implementation --------------------------------------------------------------------------------------------------

namespace row_kernels {

constexpr RowKernels<float> f32{{{"dense_topk", "dense_norms_f32"}},           {{"dense_topk", "dense_product_f32"}},
                                {{"dense_topk", "dense_score_f32"}},           {{"dense_topk", "dense_rescore_f32"}},
                                {{"dense_codes", "dense_encode_f32"}},         {{"dense_codes", "dense_rank_f32"}},
                                {{"similarity_f32", "similarity_cosines_f32"}}};
constexpr RowKernels<unsigned short> f16{
    {{"dense_topk", "dense_norms_f16"}},           {{"dense_topk", "dense_product_f16"}},
    {{"dense_topk", "dense_score_f16"}},           {{"dense_topk", "dense_rescore_f16"}},
    {{"dense_codes", "dense_encode_f16"}},         {{"dense_codes", "dense_rank_f16"}},
    {{"similarity_f32", "similarity_cosines_f16"}}};
constexpr RowKernels<unsigned short> bf16{
    {{"dense_topk", "dense_norms_bf16"}},           {{"dense_topk", "dense_product_bf16"}},
    {{"dense_topk", "dense_score_bf16"}},           {{"dense_topk", "dense_rescore_bf16"}},
    {{"dense_codes", "dense_encode_bf16"}},         {{"dense_codes", "dense_rank_bf16"}},
    {{"similarity_f32", "similarity_cosines_bf16"}}};

}  // namespace row_kernels

template <class F>
auto DeviceCorpus::with_rows(const F& f) const {
    if (type_ == DenseType::float32) return f(row_kernels::f32, wide_);
    return f(type_ == DenseType::float16 ? row_kernels::f16 : row_kernels::bf16, narrow_);
}

}  // namespace hopfuse::device
