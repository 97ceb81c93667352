// Selection of the best hits as keys of hopfuse/topk_key.h. Comparing, sorting and keeping work the same for every kind of
// score and give the same keys in any order of threads and blocks.
//
// A running list has the best `width` keys that were streamed past it, in descending order, 0 if there are fewer. Every key
// that is not in a full list is below its last one. Lists are (queries, splits, width): each split of a tile has its own
// list, so that few queries still fill a device; dense_keep_u64 merges them at the end.
#include "arguments/kernel_type.h"
#include "arguments/topk.h"
#include "dense_rows.h"
#include "hopfuse/device.h"
#include "hopfuse/query_status.h"
#include "topk_keys.h"

namespace hopfuse {

// Upper bounds of canonical scores, from the approximate dot products of a matrix product; see dense_select_f32.
struct UpperBounds {
    const float* scores;     // of this query: one for each row of the tile
    const float* row_norm;   // of the tile's rows
    const uint8_t* allowed;  // of this query and tile, or null
    int64_t first_row;
    float query_norm;
    DotBound bound;
    int cosine;

    __device__ uint64_t key(int j) const {
        if (allowed != nullptr && allowed[j] == 0) return 0;
        const float norm = row_norm[j];
        const float error =
            fmaf(bound.slack * (query_norm + bound.norm_floor), norm + bound.norm_floor, bound.underflow);
        if (cosine == 0) return make_topk_key(scores[j] + error, first_row + j);
        const float norms = query_norm * norm;
        return make_topk_key(scores[j] / norms + error / norms, first_row + j);
    }
};

struct StoredKeys {
    const uint64_t* keys;

    __device__ uint64_t key(int j) const { return keys[j]; }
};

// Streams a split of `count` keys past the block's list.
template <class Source>
HOPFUSE_DEVICE void keep_split(const Source& source, int64_t split, int64_t count, const RunningLists& lists,
                               uint64_t* buffer, int* num_waiting) {
    const int64_t begin = split * count / lists.splits, end = (split + 1) * count / lists.splits;
    keep_best(source, static_cast<int>(begin), static_cast<int>(end),
              lists.keys + static_cast<int64_t>(blockIdx.x) * lists.width, lists.fresh != 0, lists.width, lists.room,
              buffer, num_waiting);
}

}  // namespace hopfuse

// Keeps the rows of a tile whose canonical scores may be among the best, by streaming keys of upper bounds past each query's
// list. scores (B, rows) are dot products: float32 sums in any order, or those of matrix units (hopfuse/dense_topk.h).
//
// The bound. u = 2^-24, n = dim + 8, g = n u / (1 - n u). A float32 dot product in any order of additions, fused or not,
// has an error of at most g sum |q_i x_i| <= g ||q|| ||x|| (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// section 3.1, (3.5); the 8 are the additions of zeros and of partial sums beyond dim). Underflow below 2^-126 adds at most
// n 2^-126 for the products and the same for the sums, even if results are flushed to 0. So the approximate dot product a
// and the canonical one c differ by at most (g + h) ||q|| ||x|| + 4 n 2^-126, where h is that of hopfuse/dense_topk.h,
// and for float32 rows g if that is larger. The canonical norms satisfy
//   ||x|| <= (norm + f) (1 + g),   f = sqrt(n) 2^-74,
// where f covers squares below 2^-149. The rounding error of the sum a + error, and for cosine of both quotients by the same
// rounded norm(q) norm(x), is at most 8 u ||q|| ||x|| (1 + g + h) before division. With
//   slack = 1.01 (g + h + 8 u (1 + g + h)) (1 + g)^2,   underflow = 8 n 2^-126
// c <= a + error as computed (divided by the norms for cosine); the 1 % also covers the rounding of `error` itself. A query
// is complete if its k-th canonical score is above the last bound of its full list; hopfuse/topk_key.h defines the order of
// ties.
//
// Grid: queries * splits blocks. Block: 128. Shared memory: 32784 bytes (8 room; 8 KiB for k = 10, which aims at 50 %).
// Registers: <= 48 (occupancy 12 %): the widest lists are limited by shared memory. Moved: 4 bytes a score, 4 a row
// (and 1 of a mask), 16 width a block.
extern "C" __global__ void __launch_bounds__(128)
    dense_select_f32(const float* scores, int rows, int64_t first_row, const float* query_norm, const float* row_norm,
                     int cosine, const hopfuse::DotBound bound, const hopfuse::RowMask mask,
                     const hopfuse::RunningLists lists) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(uint64_t, buffer);
    __shared__ int num_waiting;
    const int64_t query = blockIdx.x / static_cast<unsigned>(lists.splits);
    const int64_t split = blockIdx.x % static_cast<unsigned>(lists.splits);
    const UpperBounds bounds = {
        scores + query * rows, row_norm + first_row, mask_of(mask, query), first_row, query_norm[query], bound, cosine};
    keep_split(bounds, split, rows, lists, buffer, &num_waiting);
}

// Streams `columns` keys of each query, `stride` before the next query's, past its lists: canonical scores, or the lists of
// several splits, which are merged.
// Grid: queries * splits blocks. Block: 128. Shared memory: 32784 bytes (8 room). Registers: <= 48 (occupancy 12 %), as
// above. Moved: 8 bytes a key, 16 width a block.
extern "C" __global__ void __launch_bounds__(128)
    dense_keep_u64(const uint64_t* keys, int64_t stride, int columns, const hopfuse::RunningLists lists) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(uint64_t, buffer);
    __shared__ int num_waiting;
    const int64_t query = blockIdx.x / static_cast<unsigned>(lists.splits);
    const int64_t split = blockIdx.x % static_cast<unsigned>(lists.splits);
    const StoredKeys stored = {keys + query * stride};
    keep_split(stored, split, columns, lists, buffer, &num_waiting);
}

// The stages of a descending bitonic sort of runs of `length` keys that stay within `chunk` keys (all sizes are powers of
// two): all stages up to runs of a chunk (first_size 2, last_size chunk), or the end of the stage for runs of one larger size
// (both that size), which dense_sort_step_u64 begins.
// Grid: one block a chunk. Block: 256. Shared memory: 32768 bytes (8 chunk). Registers: <= 40 (occupancy 50 %). Moved:
// 16 bytes a key.
extern "C" __global__ void __launch_bounds__(256)
    dense_sort_chunk_u64(uint64_t* keys, int64_t length, int chunk, int64_t first_size, int64_t last_size) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(uint64_t, buffer);
    const int64_t begin = static_cast<int64_t>(blockIdx.x) * chunk;
    for (int i = static_cast<int>(threadIdx.x); i < chunk; i += static_cast<int>(blockDim.x))
        buffer[i] = keys[begin + i];
    __syncthreads();
    bitonic_stages(buffer, chunk, begin & (length - 1), first_size, last_size);
    for (int i = static_cast<int>(threadIdx.x); i < chunk; i += static_cast<int>(blockDim.x))
        keys[begin + i] = buffer[i];
}

// One step of the same sort, over pairs of keys `distance` apart, beyond a chunk. `pairs` is half the number of keys.
// Grid: pairs / 256 blocks. Block: 256. Registers: <= 32 (occupancy 100 %). Moved: up to 32 bytes a pair.
extern "C" __global__ void __launch_bounds__(256)
    dense_sort_step_u64(uint64_t* keys, int64_t pairs, int64_t length, int64_t size, int64_t distance) {
    const int64_t pair = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    const int64_t low = 2 * pair - (pair & (distance - 1));
    hopfuse::put_in_order(keys, low, low + distance, (low & (length - 1) & size) == 0);
}

// Converts the first k of canonical keys (B, stride) to hits (B, columns), padded with id -1 and score -inf. The keys are
// already sorted, or with `sorts` the block sorts them (stride is then a power of two, in shared memory): all, or if `held` is
// not null the first held[b], which rescored[b] counts; a query that holds more is incomplete, and has no hits. If `bounds`
// (B, width), the sorted upper bounds of the rows of the keys, is not null, rescored[b] counts its rows and hits.status[b] tells
// whether no other row can be a hit (see dense_select_f32). `status` is the query's status so far (hopfuse/query_status.h).
// Grid: one block a query. Block: 128. Shared memory: 32768 bytes (8 stride where it sorts, else 16). Registers: <= 48
// (occupancy 25 %), 2 KiB for k = 10. Moved: 8 bytes a key that is sorted, 20 a hit, 8 a bound.
extern "C" __global__ void __launch_bounds__(128, 6)
    topk_emit(const uint64_t* keys, int64_t stride, int sorts, int64_t k, int64_t columns, const uint64_t* bounds,
              int width, const uint32_t* held, const int32_t* status, const hopfuse::SelectedHits hits,
              int64_t* rescored) {
    using namespace hopfuse;
    HOPFUSE_DYNAMIC_SHARED(uint64_t, buffer);
    const int64_t query = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    const uint64_t* mine = keys + query * stride;
    const bool is_lost = held != nullptr && held[query] > stride;
    if (sorts != 0) {
        const int64_t count = held == nullptr ? stride : is_lost ? 0 : held[query];
        for (int64_t i = thread; i < stride; i += threads) buffer[i] = i < count ? mine[i] : 0;
        __syncthreads();
        sort_held(buffer, static_cast<int>(count));
        mine = buffer;
        if (held != nullptr && thread == 0) rescored[query] = count;
    }
    for (int64_t i = thread; i < columns; i += threads) {
        const uint64_t key = i < k ? mine[i] : 0;
        hits.ids[query * columns + i] = key == 0 ? -1 : topk_key_row(key);
        hits.scores[query * columns + i] = key == 0 ? bits_to_float(0xff800000u) : topk_key_score(key);
        if (key != 0 && (i + 1 == k || mine[i + 1] == 0)) hits.counts[query] = i + 1;
        if (key == 0 && i == 0) hits.counts[query] = 0;
    }
    if (bounds != nullptr) {
        const uint64_t* const upper = bounds + query * width;
        for (int64_t i = thread; i < width; i += threads) {
            if (upper[i] != 0 && (i + 1 == width || upper[i + 1] == 0)) rescored[query] = i + 1;
            if (upper[i] == 0 && i == 0) rescored[query] = 0;
        }
    }
    if (thread != 0) return;
    int32_t known = is_lost ? status_incomplete : status_complete;
    if (bounds != nullptr) {
        const uint64_t last = bounds[query * width + width - 1];
        const bool proven = last == 0 || topk_key_score(mine[k - 1]) > topk_key_score(last);
        known = proven ? status_complete : status_incomplete;
    }
    hits.status[query] = status[query] < 0 ? status[query] : known;
}

HOPFUSE_KERNEL_TYPE(dense_select_f32, hopfuse::DenseSelectKernel);
HOPFUSE_KERNEL_TYPE(dense_keep_u64, hopfuse::DenseKeepKernel);
HOPFUSE_KERNEL_TYPE(dense_sort_chunk_u64, hopfuse::DenseSortChunkKernel);
HOPFUSE_KERNEL_TYPE(dense_sort_step_u64, hopfuse::DenseSortStepKernel);
HOPFUSE_KERNEL_TYPE(topk_emit, hopfuse::TopkEmitKernel);
