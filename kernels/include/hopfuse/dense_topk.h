// Exact dense top-k: the contract.
//
// FORMULA  ip: score(q, x) = q . x      cosine: score(q, x) = (q . x) / (sqrt(q . q) sqrt(x . x))
//
// ORDER OF OPERATIONS (law 2)  Every returned score is canonical float32: 16 accumulators from +0,
//   vectors as if zero-padded to a multiple of 16, a_j = fma(q[16 i + j], x[16 i + j], a_j) in
//   ascending i, then a_j += a_{j + h} for h = 8, 4, 2, 1. float16 and bfloat16 originals are converted to
//   float32 first, which is exact. cosine takes both square roots, multiplies them, and divides.
//
// CANDIDATES  may be found by any cheaper arithmetic with a proven bound. Here: rows as 8-bit codes
//   c_x = round(x / s_x), s_x = max|x| / 127, queries likewise with s_q = max|q| / L, x~ = s_x c_x, e = x - x~:
//     | q . x - s_q s_x (c_q . c_x) |  <=  ||q|| ||e_x|| + ||e_q|| ||x~||
//   c_q . c_x is exact in int32. Norms are rounded up when the codes are made, and the bound is widened by
//   the rounding of the canonical score itself. A row whose upper bound is below the k-th best lower bound
//   cannot be a hit; every other row is rescored canonically. So the result is that of an exhaustive
//   canonical scan, whatever the codes.
//
// QUERY CODES  have L = 127 levels if bytes are multiplied, in few dimensions. In many, or if 16-bit numbers are multiplied
//   (AVX2, NEON, the baseline), L is as large as int32 sums permit, which makes ||e_q|| negligible:
//     L = floor((S - d / 2) / (1.000001 sum|q| / max|q|)), at least 127, at most 32,639; S = (2^31 - 1) / 255, rounded down
//   Row codes are multiplied as c_x + 128, in 1 .. 255, and 128 sum(c_q) is subtracted afterwards. So no sum, in any order,
//   overflows int32 if sum|c_q| <= S:
//   - s_q, 1 / s_q and q_i / s_q are rounded to float32, a total relative error below 1e-6, and c_i to an integer:
//     |c_i| <= 1.000001 L |q_i| / max|q| + 1/2. Summed over d dimensions, that is at most S by the choice of L;
//   - or L is 127, and sum|c_q| <= 127 d <= S, because d <= 65,536. With more dimensions rows are scored without codes.
//   Each product is below 2^23 in magnitude and a sum of two below 2^24, so sums of pairs stay in range as well.
//   If bytes are multiplied, a code is 256 h + l with -128 <= l <= 127, and h and l are multiplied on their own: sum|l| <= 128 d
//   and sum|h| <= sum|c_q| / 256 + d / 2 are at most S too. 256 times the one sum plus the other is exact modulo 2^32, and
//   therefore exact.
//
// ROW CODES  scale s_x and codes as above, in float32. Their bounds use float32 sums of squares in the order of a canonical
//   score (16 accumulators, then the tree), and integer sums:
//     ||x||    of the canonical x . x
//     ||e_x||  of e_i = fma(-s_x, c_i, x_i), which rounds the exact difference once
//     ||x~||   = s_x sqrt(sum c_i^2), with an exact sum
//   A term of a sum is rounded at most t = ceil(d / 16) + 6 times, by a factor of 1 +- u, u = 2^-24: its difference, its
//   square's addition and the following ones, the four of the tree. No term is negative, so the exact sum is at most the
//   rounded one divided by 1 - t u; and each of the d terms may lose 2^-148 in total by underflow. Square roots of this, in
//   float64, are rounded up. The order of the sums is fixed, so codes and bounds have the same bits on every instruction set.
//   If the canonical x . x of a row is not finite, its norm is infinite and its tile has no codes; such a corpus is refused.
//
// PRODUCTS BY MATRIX UNITS (tensor cores) find candidates on a device. With u = 2^-24, d dimensions, the float32 norm of a query,
//   f >= sqrt(d) 2^-74, which covers squares that underflow, and 2^e <= norm + f < 2^(e + 1):
//     q' = 2^(14 - e) q,   high = round16(q'),   low = round16(q' - high),   q' ~ high + low,   |q'_i| < 65,504
//   The difference is exact. float16 keeps 11 bits and bfloat16 8, so with v = 2^-11 or 2^-8 and whatever is lost below the
//   smallest normal float16 number, even if that is set to 0,
//     |q'_i - high_i - low_i|  <=  v^2 |q'_i| + 2^-13,   summed with rows:  (v^2 + 2^-27 sqrt(d)) (norm + f) ||x|| 2^(14 - e)
//   Rows are 16-bit numbers, x = high, or float32 numbers, which are split like queries, into float16 numbers. Then the product
//   of both low parts is left out: |low_i| <= (v |q'_i| + 2^-14) (1 + v) of both, so all that is lost is
//     (3 v^2 + 2 2^-27 sqrt(d)) (norm(q) + f) (norm(x) + f)   times both powers of two,
//   where the 1 % below covers products of these terms, (2 v 2^-27 sqrt(d) + 2^-56 d) among them, up to 2^20 dimensions.
//   Dimensions are multiplied 32 at a time: from 0, low parts of queries with high ones of rows, high parts with low ones of rows,
//   if they have any, then high parts of both; each for the first and the last 16. So |products| add up to at most v P twice for
//   each sum of low parts, then P twice, P = sum|q'_i x_i| of the 32; and these sums are added in float32.
//     ASSUMED  A step, s + the sum of 16 products p_i, has an error of at most t (|s| + sum|p_i|), t = 2^-17.
//   A step is measured to multiply exactly and to add in groups of 4 to 16 products; a group's numbers are cut off relative
//   to the largest, at 24 bits or more, and added, and the sum is cut off to 24 bits (Fasi, Higham, Mikaitis and Pranesh,
//   Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330, 2021: V100, T4, A100; Khattak and Mikaitis,
//   Accurate models of NVIDIA tensor cores, arXiv:2512.07004, 2025: also Ada, H100, B200). Groups of 4 lose the most, 4 (5 + 1)
//   cuts of 2^-23 of a partial sum, which is below 2^-18; t leaves more than another bit. Subnormal rows are not set to 0.
//   The self-test fails on a device whose units are less exact. Four steps lose at most t (2 + 4 v) (1 + 2 t) P, and six of them,
//   of float32 rows, t (2 + 10 v) (1 + 2 t) P, where v = 2^-11: both below 2.02 t P but for the 1 %. So
//     | product - q . x |  <=  h ||q|| ||x||,   h = 1.01 (2.02 t + s + c u / (1 - c u)),  c = ceil(d / 32) + 1
//     s = v^2 + 2^-27 sqrt(d), or of float32 rows 3 v^2 + 2 2^-27 sqrt(d)
//   where 1 % covers products of these terms and v P above, and underflow is below f ||x||, or f (||q|| + ||x|| + f). Without such
//   units (bfloat16 on compute capability 7.5) the 32 products are added by float32 arithmetic, with an error of at most 33 u P,
//   below t P. Float32 rows are multiplied by units or by float32 arithmetic, as is faster on a device; their bound is the larger
//   one of both (dense_topk.cpp), on every device.
//
// EXHAUSTIVE SCORING  uses register blocks: a matrix product whose sums are the canonical ones, 16 chains each, in any order
//   of scores. Candidates are sorted by row, so that a row is read once for all queries that need it: first the k most
//   promising rows of each query, then all that the k-th exact score does not rule out.
//
// ARRAYS WITHOUT CODES  are searched once. B, d, k and the lists decide how: for few queries every row is scored; for many,
//   rows are encoded block by block, and each block is scanned while it is in the cache. Both are exact. Such an array may
//   hold rows that cannot be scored: *is_sound says that each row's sum of squares, in float32, is at most DENSE_SOUND, a
//   quarter of the largest float32, which is safely below the allowed half for any rounding of the sum. An array that is not
//   sound must be checked row by row; its hits are meaningless, and if it passes it is searched again, with codes.
//
// FILTERS   A mask, or id lists. A query whose list has less than 1/DENSE_SHORT_LIST of the rows scores them one by one; a
//   longer list is converted to a mask. The rule depends only on the list and the corpus, and both ways are exact.
//
// TIES      higher score, then lower id.
// PADDING   id -1, score -inf after counts[b] hits.
// ALIASING  No output overlaps an input or another output.
#pragma once

#include "hopfuse/dense_codes.h"
#include "hopfuse/execution.h"
#include "hopfuse/integers.h"

#include "hopfuse/status.h"

namespace hopfuse {

constexpr int DENSE_TILE = 16;       // rows per tile of codes
constexpr int DENSE_GROUP = 4;       // adjacent dimensions in a tile
constexpr int DENSE_STEP = 12;       // tiles are padded to a multiple of this
constexpr int DENSE_BLOCK_STEP = 4;  // a block scanned at a time has a multiple of this many tiles
constexpr int DENSE_SHORT_LIST = 8;
constexpr double DENSE_STEP_ERROR = 1.0 / 131072;  // t: the assumed error of a matrix unit's step
constexpr float DENSE_SOUND = 8.5e37f;             // the largest sum of squares that needs no further check

enum class DenseType : int { float32 = 0, float16 = 1, bfloat16 = 2 };  // the latter two as their bits

struct DenseVectors {
    int64_t count;
    int32_t dim;
    DenseType type;
    bool cosine;
    const void* data;  // (count, dim), contiguous
};

// Codes of `count` rows, padded to a multiple of DENSE_STEP tiles and to whole groups, or null for an array without codes
// (not with cosine). A tile is (dim / 4, 16 rows, 4 dims) of c + 128. For cosine, scale, error and norm_code are those of
// x / ||x||.
struct DenseCodes {
    uint8_t* codes;    // (tiles, groups, 16, 4)
    float* scale;      // (16 tiles,) s_x
    float* error;      // (16 tiles,) ||e_x|| plus the rounding of the canonical score, rounded up
    float* norm_code;  // (16 tiles,) ||x~||, rounded up
    float* norm;       // (count,) canonical sqrt(x . x)
};

struct DenseCorpus {
    DenseVectors vectors;
    DenseCodes codes;
};

struct DenseQueries {
    int64_t batch;
    const float* data;  // (B, dim)
    int64_t k;          // >= 1
    // Which rows may be hits: at most one of the two is given, for all queries or per query.
    const uint8_t* allow_mask;    // (N,) or (B, N): 0 or 1
    const int64_t* allow_indptr;  // (2,) or (B + 1,)
    const int64_t* allow_ids;     // row ids, strictly ascending
    bool allow_shared;
    Execution execution;
};

struct DenseHits {
    int64_t* ids;     // (B, k)
    float* scores;    // (B, k)
    int64_t* counts;  // (B,)
    // (B,) rows scored canonically, which the bound could not rule out. It measures cost and may differ between instruction
    // sets, because query codes do.
    int64_t* rescored;
    bool* is_sound;  // for a corpus without codes, if every row is read; or null
};

}  // namespace hopfuse
