// Exact dense top-k by 8-bit codes, as on the CPU (hopfuse/dense_topk.h): a scan of codes bounds every score, a threshold rules out
// nearly all rows, and canonical scores rank the others. Products of codes are those of matrix units for integers, so they are exact
// and the bound has no term for them. Scores of a corpus are never written.
//
// The scan is of a growing sample: first of as many rows as the list of a query has room for, then of more and more until there are no
// others. After each part the threshold of a query is raised to the k-th best lower bound of its list, and rows whose upper bound
// is below are dropped. The threshold is that of k different rows of the list, which stay in it because their upper bounds are no lower:
// so no hit is ever dropped, and ties at the cut are kept. A list that is full ends its query without an answer.
#include "arguments/dense_codes.h"
#include "arguments/kernel_type.h"
#include "dense_rows.h"
#include "hopfuse/dense_codes.h"
#include "hopfuse/device.h"
#include "hopfuse/query_status.h"
#include "topk_keys.h"

namespace hopfuse {

// ---- Codes -----------------------------------------------------------------------------------------------------------

// The code of a number: the nearest integer to x / scale, by the inverse of the scale, within the levels.
HOPFUSE_DEVICE float code_of(float x, float inverse, float levels) {
    const float nearest = rintf(x * inverse);
    return nearest > levels ? levels : nearest < -levels ? -levels : nearest;
}

// Codes a row by 16 threads, those of its canonical sums; thread j has dimensions j, j + 16 and so on.
template <class Row>
HOPFUSE_DEVICE void encode_row(const typename Row::Element* rows, int dim, bool cosine, const float* norm,
                               const RowCodes& out) {
    const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    const int lane = static_cast<int>(threadIdx.x) % LANES;
    const bool is_row = at < out.rows;
    const typename Row::Element* const row = rows + (is_row ? at : 0) * dim;
    float square = 0.0f, largest = 0.0f;
    for (int i = lane; i < dim; i += LANES) {
        const float x = Row::widen(row[i]);
        square = fmaf(x, x, square);
        largest = fmaxf(largest, fabsf(x));
    }
    for (int h = LANES / 2; h > 0; h /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, h, LANES));
    const float levels = DENSE_LEVELS, scale = is_row ? code_scale(largest, levels) : 0.0f;
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    const int64_t tile = at / CODE_ROWS;
    const int in_tile = static_cast<int>(at % CODE_ROWS);
    // The word of this thread's four dimensions in the first 16 of a step.
    uint32_t* word = out.codes + (tile * out.steps * 32 + in_tile % 8 * 4 + lane / 4) * 4 + in_tile / 8;
    float error = 0.0f;
    int squares = 0;
    HOPFUSE_ROLLED
    for (int first = 0; first < out.steps * CODE_DEPTH; first += LANES) {
        const float x = first + lane < dim ? Row::widen(row[first + lane]) : 0.0f;
        const float code = code_of(x, inverse, levels), gap = fmaf(-scale, code, x);
        error = fmaf(gap, gap, error);
        const int whole = static_cast<int>(code);
        squares += whole * whole;
        uint32_t four = (static_cast<uint32_t>(whole) & 255u) << (8 * (lane % 4));
        four |= __shfl_xor_sync(0xffffffffu, four, 1);
        four |= __shfl_xor_sync(0xffffffffu, four, 2);
        if (lane % 4 == 0) word[first / LANES % 2 * 2] = four;
        if (first / LANES % 2 == 1) word += 32 * 4;
    }
    square = add_tree(square);
    error = add_tree(error);
    for (int h = LANES / 2; h > 0; h /= 2) squares += __shfl_down_sync(0xffffffffu, squares, h, LANES);
    if (lane != 0) return;
    const CodeBounds bounds = code_bounds(scale, square, error, squares, dim, cosine, is_row ? norm[at] : 1.0f);
    out.scale[at] = is_row ? bounds.scale : 0.0f;
    out.error[at] = is_row ? bounds.error : 0.0f;
    out.norm_code[at] = is_row ? bounds.norm_code : 0.0f;
}

// ---- Scan ------------------------------------------------------------------------------------------------------------

// Multiplies the codes of rows with those of up to 4 `Tiles` queries, and lists the rows that the thresholds do not rule out. A warp
// has 32 rows. Its lanes read the codes of rows straight into registers, 64 dimensions ahead, and those of queries from shared memory,
// where the block puts them.
template <int Tiles>
struct CodeScan {
    static constexpr int WARP = 32, ROW_TILES = SCAN_ROWS / CODE_ROWS, STEPS = 2;
    static constexpr int ROWS = 2 * ROW_TILES;                   // rows of which a lane has sums
    static constexpr int PARTS = Tiles * STEPS * WARP * 8 / 16;  // of 16 bytes, of the codes of queries in a buffer
    static_assert(PARTS <= CODES_THREADS && ROWS * Tiles <= 32,
                  "a thread copies one part, and marks its sums in a word");

    using Shared = uint4[2][PARTS];

    __device__ static void scan(const RowCodes& rows, const QueryCodes& queries, const ScanOrder& order,
                                const RowMask& mask, const ScannedRows& found, Shared& shared) {
        const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP;
        const int all_tiles = (queries.batch + CODE_QUERIES - 1) / CODE_QUERIES,
                  groups = (all_tiles + Tiles - 1) / Tiles;
        const int first_tile = static_cast<int>(blockIdx.x % static_cast<unsigned>(groups)) * Tiles;
        const int tiles = all_tiles - first_tile < Tiles ? all_tiles - first_tile : Tiles;
        const int64_t place = order.first + blockIdx.x / static_cast<unsigned>(groups) * CODES_WARPS + thread / WARP;
        const int64_t first_row = place < order.end ? place * order.step % order.parts * SCAN_ROWS : rows.rows;

        const uint4* line[ROW_TILES];
        const int64_t last = (rows.rows - 1) / CODE_ROWS;
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            const int64_t tile = first_row / CODE_ROWS + m < last ? first_row / CODE_ROWS + m : last;
            line[m] = reinterpret_cast<const uint4*>(rows.codes) + tile * rows.steps * WARP + lane;
        }
        // This thread's part of the queries' codes; a tile's are contiguous.
        constexpr int in_tile = STEPS * WARP * 8 / 16;
        const bool is_copying = thread < tiles * in_tile;
        const uint4* part =
            reinterpret_cast<const uint4*>(queries.codes) +
            static_cast<int64_t>(first_tile + (is_copying ? thread / in_tile : 0)) * rows.steps * (in_tile / STEPS) +
            thread % in_tile;

        int sums[ROW_TILES][Tiles][4] = {};
        uint4 now[ROW_TILES][STEPS], next[ROW_TILES][STEPS], copied = make_uint4(0, 0, 0, 0);
        read(line, now);
        if (is_copying) shared[0][thread] = *part;
        int buffer = 0;
        HOPFUSE_ROLLED
        for (int step = 0; step < rows.steps; step += STEPS) {
            __syncthreads();
            const bool has_next = step + STEPS < rows.steps;
            if (has_next) {
#pragma unroll
                for (int m = 0; m < ROW_TILES; ++m) line[m] += STEPS * WARP;
                part += in_tile;
                read(line, next);
                if (is_copying) copied = *part;
            }
            const uint2* const columns = reinterpret_cast<const uint2*>(shared[buffer]) + lane;
#pragma unroll
            for (int s = 0; s < STEPS; ++s)
#pragma unroll
                for (int tile = 0; tile < Tiles; ++tile)
                    if (tile < tiles) {
                        const uint2 column = columns[(tile * STEPS + s) * WARP];
#pragma unroll
                        for (int m = 0; m < ROW_TILES; ++m)
                            multiply_add_bytes(sums[m][tile], {now[m][s].x, now[m][s].y, now[m][s].z, now[m][s].w},
                                               {column.x, column.y});
                    }
            buffer = 1 - buffer;
            if (has_next && is_copying) shared[buffer][thread] = copied;
#pragma unroll
            for (int m = 0; m < ROW_TILES; ++m)
#pragma unroll
                for (int s = 0; s < STEPS; ++s) now[m][s] = next[m][s];
        }
        list(rows, queries, first_row + lane / 4, first_tile * CODE_QUERIES + lane % 4, mask, found, sums);
    }

private:
    __device__ static void read(const uint4* const (&line)[ROW_TILES], uint4 (&to)[ROW_TILES][STEPS]) {
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m)
#pragma unroll
            for (int s = 0; s < STEPS; ++s) to[m][s] = line[m][s * WARP];
    }

    // The bounds of a score from the product of codes.
    struct Interval {
        float lower, upper;
    };
    __device__ static Interval interval(int dot, const QueryBounds& of_query, float scale, float error,
                                        float norm_code) {
        const float middle = static_cast<float>(dot) * (scale * of_query.scale);
        const float width = fmaf(of_query.norm, error, fmaf(of_query.error, norm_code, DENSE_CODE_UNDERFLOW));
        return {middle - width, middle + width};
    }

    // Sum number ROWS * tile + j of a lane is that of row first_row + 8 j and query first_query + 4 tile.
    __device__ static void list(const RowCodes& rows, const QueryCodes& queries, int64_t first_row, int first_query,
                                const RowMask& mask, const ScannedRows& found, const int (&sums)[ROW_TILES][Tiles][4]) {
        int dots[Tiles * ROWS];
#pragma unroll
        for (int i = 0; i < Tiles * ROWS; ++i) {
            const int (&sum)[4] = sums[i % ROWS / 2][i / ROWS];
            dots[i] = static_cast<int>(256u * static_cast<unsigned>(sum[i % 2 * 2]) +
                                       static_cast<unsigned>(sum[i % 2 * 2 + 1]));
        }
        float scale[ROWS], error[ROWS], norm_code[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            const int64_t row = first_row + 8 * j < rows.rows ? first_row + 8 * j : 0;
            scale[j] = rows.scale[row], error[j] = rows.error[row], norm_code[j] = rows.norm_code[row];
        }
        unsigned kept = 0;
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            const int query = first_query + tile * CODE_QUERIES;
            if (query >= queries.batch) continue;
            const QueryBounds of_query = found.bounds[query];
#pragma unroll
            for (int j = 0; j < ROWS; ++j) {
                const int i = tile * ROWS + j;
                const float upper = interval(dots[i], of_query, scale[j], error[j], norm_code[j]).upper;
                if (upper >= of_query.threshold && first_row + 8 * j < rows.rows) kept |= 1u << i;
            }
        }
        HOPFUSE_ROLLED
        for (; kept != 0; kept &= kept - 1) {
            const int at = __ffs(static_cast<int>(kept)) - 1, query = first_query + at / ROWS * CODE_QUERIES;
            const int64_t row = first_row + at % ROWS * 8;
            if (!is_allowed(mask, query, row)) continue;
            int dot = 0;
#pragma unroll
            for (int i = 0; i < Tiles * ROWS; ++i) dot = i == at ? dots[i] : dot;
            const Interval bounds =
                interval(dot, found.bounds[query], rows.scale[row], rows.error[row], rows.norm_code[row]);
            const uint32_t slot = atomicAdd(found.count + query, 1u);
            if (slot >= found.room) continue;
            const int64_t to = static_cast<int64_t>(query) * found.room + slot;
            found.keys[to] = make_topk_key(bounds.upper, row);
            found.lower[to] = static_cast<uint32_t>(make_topk_key(bounds.lower, row) >> 32);
        }
    }
};

// ---- Thresholds ------------------------------------------------------------------------------------------------------

// The memory of a block that raises a threshold.
struct RaiseShared {
    unsigned ranks[256];  // how many have each byte
    unsigned byte, left, kept;
};

// The k-th largest of n ranks, by a byte at a time from the highest; k <= n.
HOPFUSE_DEVICE uint32_t kth_largest(const uint32_t* ranks, unsigned n, unsigned k, RaiseShared& shared) {
    const unsigned thread = threadIdx.x;
    uint32_t known = 0;
    HOPFUSE_ROLLED
    for (int shift = 24; shift >= 0; shift -= 8) {
        shared.ranks[thread] = 0;
        __syncthreads();
        for (unsigned i = thread; i < n; i += RAISE_THREADS) {
            const uint32_t rank = ranks[i];
            if (((rank ^ known) & ~((uint32_t{256} << shift) - 1)) == 0)
                atomicAdd(shared.ranks + (rank >> shift & 255u), 1u);
        }
        __syncthreads();
        if (thread < 32) {  // lane i has bytes 8 i to 8 i + 7; `above` counts the ranks of later lanes
            unsigned own = 0;
            for (int j = 0; j < 8; ++j) own += shared.ranks[8 * thread + j];
            unsigned above = own;
            for (unsigned step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_down_sync(0xffffffffu, above, step);
                if (thread + step < 32) above += other;
            }
            above -= own;
            if (above < k && k <= above + own) {
                unsigned byte = 8 * thread + 7;
                for (; above + shared.ranks[byte] < k; --byte) above += shared.ranks[byte];
                shared.byte = byte;
                shared.left = k - above;
            }
        }
        __syncthreads();
        known |= shared.byte << shift;
        k = shared.left;
        __syncthreads();
    }
    return known;
}

// Raises the threshold of the block's query, and drops the rows that it rules out.
HOPFUSE_DEVICE void raise(const ScannedRows& found, unsigned k, RaiseShared& shared) {
    const unsigned thread = threadIdx.x, n = found.count[blockIdx.x];
    if (n < k) return;
    if (n > found.room) {  // some rows are lost
        if (thread == 0) found.bounds[blockIdx.x].threshold = bits_to_float(0x7f800000u);
        return;
    }
    uint64_t* const keys = found.keys + static_cast<int64_t>(blockIdx.x) * found.room;
    uint32_t* const lower = found.lower + static_cast<int64_t>(blockIdx.x) * found.room;
    const uint32_t rank = kth_largest(lower, n, k, shared);
    if (thread == 0) shared.kept = 0;
    __syncthreads();
    for (unsigned first = 0; first < n; first += RAISE_THREADS) {  // what is kept goes where all has been read
        const bool is_row = first + thread < n;
        const uint64_t key = is_row ? keys[first + thread] : 0;
        const uint32_t own = is_row ? lower[first + thread] : 0;
        __syncthreads();
        if (key >> 32 >= rank && is_row) {
            const unsigned to = atomicAdd(&shared.kept, 1u);
            keys[to] = key;
            lower[to] = own;
        }
        __syncthreads();
    }
    if (thread != 0) return;
    found.count[blockIdx.x] = shared.kept;
    found.bounds[blockIdx.x].threshold = topk_key_score(static_cast<uint64_t>(rank) << 32);
}

// ---- Queries and scores ----------------------------------------------------------------------------------------------

// Codes the query of a warp, and empties its list. A query that cannot be searched has a threshold that no row reaches.
HOPFUSE_DEVICE void encode_query(const QueryVectors& q, const int32_t* status, const QueryCodes& out,
                                 const ScannedRows& found) {
    const int lane = static_cast<int>(threadIdx.x) % 32, in_tile = static_cast<int>(threadIdx.x) / 32;
    const int query = static_cast<int>(blockIdx.x) * CODE_QUERIES + in_tile;
    const bool is_query = query < q.batch, is_good = is_query && status[is_query ? query : 0] == status_complete;
    const float* const numbers = q.data + static_cast<int64_t>(is_query ? query : 0) * q.dim;
    const int dim = is_good ? q.dim : 0;
    float largest = 0.0f;
    double sum = 0.0;
    for (int i = lane; i < dim; i += 32) {
        const float size = fabsf(numbers[i]);
        largest = fmaxf(largest, size);
        sum = sum + static_cast<double>(size);
    }
    for (int step = 16; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
        sum = sum + __shfl_xor_sync(0xffffffffu, sum, step);
    }
    const float levels = static_cast<float>(query_levels(sum, static_cast<double>(largest), q.dim, DENSE_WIDE_LEVELS));
    const float scale = code_scale(largest, levels), inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    double error = 0.0, norm_code = 0.0, norm = 0.0;
    uint32_t* const words = out.codes + static_cast<int64_t>(blockIdx.x) * out.steps * (32 * 2);
    for (int four = lane; four < out.steps * (CODE_DEPTH / 4); four += 32) {  // dimensions 4 four and the next three
        uint32_t high = 0, low = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float x = 4 * four + j < dim ? numbers[4 * four + j] : 0.0f;
            const float code = code_of(x, inverse, levels);
            const double coded = static_cast<double>(scale) * static_cast<double>(code);
            const double gap = static_cast<double>(x) - coded;
            error = error + gap * gap;
            norm_code = norm_code + coded * coded;
            norm = norm + static_cast<double>(x) * static_cast<double>(x);
            const int whole = static_cast<int>(code), upper = (whole + 128) >> 8;
            high |= (static_cast<uint32_t>(upper) & 255u) << (8 * j);
            low |= (static_cast<uint32_t>(whole - 256 * upper) & 255u) << (8 * j);
        }
        const int at = (four / 8 * 32 + 2 * in_tile * 4 + four % 4) * 2 + four / 4 % 2;
        words[at] = high;
        words[at + 4 * 2] = low;
    }
    for (int step = 16; step > 0; step /= 2) {
        error = error + __shfl_xor_sync(0xffffffffu, error, step);
        norm_code = norm_code + __shfl_xor_sync(0xffffffffu, norm_code, step);
        norm = norm + __shfl_xor_sync(0xffffffffu, norm, step);
    }
    if (lane != 0 || !is_query) return;
    const double unit = q.cosine != 0 && is_good ? static_cast<double>(q.norm[query]) : 1.0;
    found.count[query] = 0;
    found.bounds[query] = {static_cast<float>(static_cast<double>(scale) / unit), float_above(sqrt(norm) / unit),
                           float_above(sqrt(error) / unit), bits_to_float(is_good ? 0xff800000u : 0x7f800000u)};
}

// Replaces the keys of a query's list by those of canonical scores.
template <class Row>
HOPFUSE_DEVICE void rank_listed(const typename Row::Element* corpus, const float* row_norm, const QueryVectors& q,
                                int parts, const ScannedRows& found) {
    const int lane = static_cast<int>(threadIdx.x) % LANES;
    const int64_t b = blockIdx.x / static_cast<unsigned>(parts);
    const unsigned n = found.count[b];
    if (n > found.room) return;
    uint64_t* const keys = found.keys + b * found.room;
    const float* const query[1] = {q.data + b * q.dim};
    for (unsigned first = blockIdx.x % static_cast<unsigned>(parts) * DENSE_BLOCK_ROWS; first < n;
         first += static_cast<unsigned>(parts) * DENSE_BLOCK_ROWS) {
        const unsigned at = first + threadIdx.x / LANES;
        const int64_t row = at < n ? topk_key_row(keys[at]) : 0;
        float sum[1];
        accumulate<Row>(query, corpus + row * q.dim, q.dim, lane, sum);
        sum[0] = add_tree(sum[0]);
        __syncwarp();  // all have read the row's number
        if (lane == 0 && at < n) keys[at] = make_topk_key(score_of(sum[0], q.cosine, q.norm[b], row_norm[row]), row);
    }
}

}  // namespace hopfuse

// dense_encode_TYPE: codes and bounds of rows, and zeros for those that fill the last tile.
// Grid: 16 rows a block. Block: 256. Registers: <= 48 (occupancy 62 %). Moved: a row's bytes twice, a byte a dimension and 12.
#define HOPFUSE_DENSE_ENCODE(name, Row)                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        name(const hopfuse::Row::Element* rows, int dim, int cosine, const float* norm, const hopfuse::RowCodes out) { \
        hopfuse::encode_row<hopfuse::Row>(rows, dim, cosine != 0, norm, out);                                          \
    }                                                                                                                  \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseEncodeKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_ENCODE(dense_encode_f32, Float32Row)
HOPFUSE_DENSE_ENCODE(dense_encode_f16, Float16Row)
HOPFUSE_DENSE_ENCODE(dense_encode_bf16, BFloat16Row)

// dense_encode_queries: codes and bounds of queries, and their empty lists.
// Grid: 4 queries a block. Block: 128. Registers: <= 64 (occupancy 50 %). Moved: a query's bytes twice, 2 a dimension and 24.
extern "C" __global__ void __launch_bounds__(128)
    dense_encode_queries(const hopfuse::QueryVectors queries, const int32_t* status, const hopfuse::QueryCodes out,
                         const hopfuse::ScannedRows found) {
    hopfuse::encode_query(queries, status, out, found);
}
HOPFUSE_KERNEL_TYPE(dense_encode_queries, hopfuse::DenseEncodeQueriesKernel);

// dense_scan_qCOUNT: lists the rows of a sample that the thresholds of queries do not rule out, COUNT queries at a time.
// Grid: 256 rows a block * ceil(batch / COUNT), the queries of the same rows side by side. Block: 256. Shared memory: 8192 bytes. Registers: <=
// 128 (occupancy 25 %). In flight: 64 bytes a thread. Moved: a row's codes and 12 bytes for every COUNT queries, but for the first from
// the second-level cache; 2 bytes a dimension of a query for every 256 rows from there; 12 bytes a listed row.
#define HOPFUSE_DENSE_SCAN(name, tiles, least_blocks)                                                         \
    extern "C" __global__ void __launch_bounds__(256, least_blocks)                                           \
        name(const hopfuse::RowCodes rows, const hopfuse::QueryCodes queries, const hopfuse::ScanOrder order, \
             const hopfuse::RowMask mask, const hopfuse::ScannedRows found) {                                 \
        __shared__ hopfuse::CodeScan<tiles>::Shared shared;                                                   \
        hopfuse::CodeScan<tiles>::scan(rows, queries, order, mask, found, shared);                            \
    }                                                                                                         \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseScanKernel);

HOPFUSE_DENSE_SCAN(dense_scan_q4, 1, 3)
HOPFUSE_DENSE_SCAN(dense_scan_q16, 4, 2)
HOPFUSE_DENSE_SCAN(dense_scan_q32, 8, 2)

// dense_raise: raises the threshold of each query to the k-th best lower bound of its list, and drops the rows that it rules out. The
// threshold of a query whose list is full is infinite from then on.
// Grid: one block a query. Block: 256. Shared memory: 1040 bytes. Registers: <= 40 (occupancy 75 %). Moved: 28 bytes a listed row, 12 a
// kept one.
extern "C" __global__ void __launch_bounds__(256) dense_raise(const hopfuse::ScannedRows found, int k) {
    __shared__ hopfuse::RaiseShared shared;
    hopfuse::raise(found, static_cast<unsigned>(k), shared);
}
HOPFUSE_KERNEL_TYPE(dense_raise, hopfuse::DenseRaiseKernel);

// dense_rank_TYPE: replaces the keys of listed rows by those of canonical scores; lists that were full stay as they are.
// Grid: batch * parts blocks. Block: 256. Registers: <= 64 (occupancy 50 %). Moved: a row's bytes and 16 for each listed row.
#define HOPFUSE_DENSE_RANK(name, Row)                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                      \
        name(const hopfuse::Row::Element* corpus, const float* row_norm, const hopfuse::QueryVectors queries, \
             int parts, const hopfuse::ScannedRows found) {                                                   \
        hopfuse::rank_listed<hopfuse::Row>(corpus, row_norm, queries, parts, found);                          \
    }                                                                                                         \
    HOPFUSE_KERNEL_TYPE(name, hopfuse::DenseRankKernel<hopfuse::Row::Element>);

HOPFUSE_DENSE_RANK(dense_rank_f32, Float32Row)
HOPFUSE_DENSE_RANK(dense_rank_f16, Float16Row)
HOPFUSE_DENSE_RANK(dense_rank_bf16, BFloat16Row)
