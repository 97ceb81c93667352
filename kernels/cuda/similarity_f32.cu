// similarity_f32 on a device. Contract: hopfuse/similarity.h, whose functions it uses. Cosines are canonical, like those of
// dense_topk.cu. Sums are of integers, so atomic additions have the same result in any order.
#include "arguments/kernel_type.h"
#include "arguments/similarity_f32.h"
#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/similarity.h"

namespace hopfuse {

using Whole = unsigned long long;

// Maps cosines to unsigned numbers above 0 of the same order, and back.
HOPFUSE_DEVICE unsigned rank_of(float cosine) {
    const unsigned bits = float_to_bits(cosine), sign = 0x80000000u;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

HOPFUSE_DEVICE float cosine_of(unsigned rank) {
    return bits_to_float((rank & 0x80000000u) != 0 ? rank & 0x7fffffffu : ~rank);
}

// Cosines of one row with up to QUERIES_PER_ROW queries; `best` has the ranks of the largest that the block has seen.
template <class Row>
HOPFUSE_DEVICE void measure_row(const typename Row::Element* rows, const float* row_norm, int64_t count,
                                const QueryVectors& q, const RowMask& mask, float* out, unsigned* best) {
    const int groups = static_cast<int>(blockDim.x) / LANES, lane = static_cast<int>(threadIdx.x) % LANES;
    const int64_t query_groups = (q.batch + QUERIES_PER_ROW - 1) / QUERIES_PER_ROW;
    const int64_t first_query = blockIdx.x % query_groups * QUERIES_PER_ROW;
    const int64_t row = blockIdx.x / query_groups * groups + threadIdx.x / LANES;
    const bool is_row = row < count;
    const float* query[QUERIES_PER_ROW];
    float sum[QUERIES_PER_ROW];
#pragma unroll
    for (int t = 0; t < QUERIES_PER_ROW; ++t)
        query[t] = q.data + (first_query + t < q.batch ? first_query + t : first_query) * q.dim;
    accumulate<Row>(query, rows + (is_row ? row : 0) * q.dim, q.dim, lane, sum);
    for (int t = 0; t < QUERIES_PER_ROW; ++t) sum[t] = add_tree(sum[t]);
    if (lane != 0 || !is_row) return;
#pragma unroll
    for (int t = 0; t < QUERIES_PER_ROW; ++t) {
        const int64_t b = first_query + t;
        if (b >= q.batch) continue;
        const bool counts = is_allowed(mask, b, row);
        const float cosine = counts ? score_of(sum[t], 1, q.norm[b], row_norm[row]) : SIMILARITY_ABSENT;
        out[b * count + row] = cosine;
        if (counts) atomicMax(best + t, rank_of(cosine));
    }
}

// The same for a block's rows; `best` are its shared ranks.
template <class Row>
HOPFUSE_DEVICE void measure_rows(const typename Row::Element* rows, const float* row_norm, int64_t count,
                                 const QueryVectors& q, const RowMask& mask, float* out, unsigned* best,
                                 unsigned* largest) {
    if (threadIdx.x < QUERIES_PER_ROW) best[threadIdx.x] = 0;
    __syncthreads();
    measure_row<Row>(rows, row_norm, count, q, mask, out, best);
    __syncthreads();
    const int64_t query_groups = (q.batch + QUERIES_PER_ROW - 1) / QUERIES_PER_ROW;
    const int64_t query = blockIdx.x % query_groups * QUERIES_PER_ROW + threadIdx.x;
    if (threadIdx.x < QUERIES_PER_ROW && query < q.batch) atomicMax(largest + query, best[threadIdx.x]);
}

// A block's passages of one query, at most `part`.
struct PassagePart {
    int64_t query, begin, end;

    __device__ static PassagePart of(int64_t count, int64_t part) {
        const int64_t parts = (count + part - 1) / part, begin = blockIdx.x % parts * part;
        return {blockIdx.x / parts, begin, begin + part < count ? begin + part : count};
    }
};

// Adds a warp's sum of integers to `total`.
HOPFUSE_DEVICE void add_whole(Whole* total, Whole mine) {
    for (int h = 16; h > 0; h /= 2) mine = mine + __shfl_down_sync(0xffffffffu, mine, h);
    if (threadIdx.x % 32 == 0) atomicAdd(total, mine);
}

}  // namespace hopfuse

// similarity_cosines_TYPE: cosines (batch, count), SIMILARITY_ABSENT for passages that are not allowed, and the rank of each
// query's largest cosine, which is 0 before.
// Grid: ceil(count / 16) * ceil(batch / 4) blocks, the queries of some rows side by side. Block: 256. Shared memory: 16 bytes.
// Registers: <= 64 (occupancy 50 %). Moved: a row's bytes for every 4 queries, mostly from the second-level cache; 4 bytes a
// cosine.
#define HOPFUSE_SIMILARITY_COSINES(name, Row)                                                                   \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        name(const hopfuse::Row::Element* rows, const float* row_norm, int64_t count,                           \
             const hopfuse::QueryVectors queries, const hopfuse::RowMask mask, float* out, unsigned* largest) { \
        __shared__ unsigned best[hopfuse::QUERIES_PER_ROW];                                                     \
        hopfuse::measure_rows<hopfuse::Row>(rows, row_norm, count, queries, mask, out, best, largest);          \
    }                                                                                                           \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::SimilarityCosinesKernel<hopfuse::Row::Element>);

HOPFUSE_SIMILARITY_COSINES(similarity_cosines_f32, Float32Row)
HOPFUSE_SIMILARITY_COSINES(similarity_cosines_f16, Float16Row)
HOPFUSE_SIMILARITY_COSINES(similarity_cosines_bf16, BFloat16Row)

// similarity_sums_f32: n, S and the halves of Q of each query, (batch, 4), 0 beforehand.
// Grid: ceil(count / part) blocks a query. Block: 256. Registers: <= 48 (occupancy 62 %). Moved: 4 bytes a cosine.
extern "C" __global__ void __launch_bounds__(256)
    similarity_sums_f32(const float* cosines, int64_t count, int64_t part, const unsigned* largest,
                        unsigned long long* sums) {
    using namespace hopfuse;
    const PassagePart at = PassagePart::of(count, part);
    const float most = cosine_of(largest[at.query]);
    Whole held = 0, gaps = 0, low = 0, high = 0;
    for (int64_t i = at.begin + threadIdx.x; i < at.end; i += blockDim.x) {
        const float cosine = cosines[at.query * count + i];
        if (!is_similarity(cosine)) continue;
        const Whole grains = similarity_grains(most - cosine), square = grains * grains;
        held += 1, gaps += grains, low += square & 0xffffffffu, high += square >> 32;
    }
    Whole* const mine = sums + at.query * 4;
    add_whole(mine, held);
    add_whole(mine + 1, gaps);
    add_whole(mine + 2, low);
    add_whole(mine + 3, high);
}

// similarity_weights_f32: converts cosines to weights, in place.
// Grid: ceil(count / part) blocks a query. Block: 256. Shared memory: 4 bytes. Registers: <= 40 (occupancy 75 %). Moved: 4
// bytes a cosine, read and written.
extern "C" __global__ void __launch_bounds__(256)
    similarity_weights_f32(float* cosines, int64_t count, int64_t part, const unsigned* largest,
                           const unsigned long long* sums, double tau, float floor) {
    using namespace hopfuse;
    __shared__ float shared_scale;
    const PassagePart at = PassagePart::of(count, part);
    if (threadIdx.x == 0) {
        const unsigned long long* const mine = sums + at.query * 4;
        shared_scale = similarity_scale({mine[0], mine[1], mine[2], mine[3]}, tau);
    }
    __syncthreads();
    const float most = cosine_of(largest[at.query]), scale = shared_scale;
    for (int64_t i = at.begin + threadIdx.x; i < at.end; i += blockDim.x) {
        const float cosine = cosines[at.query * count + i];
        cosines[at.query * count + i] = is_similarity(cosine) ? similarity_weight(most - cosine, scale, floor) : 0.0f;
    }
}

HOPFUSE_KERNEL_TYPE(similarity_sums_f32, hopfuse::SimilaritySumsKernel);
HOPFUSE_KERNEL_TYPE(similarity_weights_f32, hopfuse::SimilarityWeightsKernel);
