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
//   cannot be a hit; every other row is rescored canonically. So the answer is that of an exhaustive
//   canonical scan, whatever the codes.
//
// QUERY CODES  have L = 127 levels where bytes are multiplied. Where 16-bit numbers are (AVX2, NEON, the baseline), L is what
//   int32 leaves room for, so that ||e_q|| all but vanishes:
//     L = floor((S - d / 2) / (1.000001 sum|q| / max|q|)), at least 127, at most 32,767; S = (2^31 - 1) / 255, rounded down
//   Rows' codes are multiplied as c_x + 128, which is 1 .. 255; 128 sum(c_q) is taken off afterwards. So no sum, whatever
//   its order, leaves int32 if sum|c_q| <= S:
//   - s_q, 1 / s_q and q_i / s_q are rounded to float32, which errs by less than a millionth in all, and c_i to an integer:
//     |c_i| <= 1.000001 L |q_i| / max|q| + 1/2. Summed over d dimensions, that is at most S by the choice of L;
//   - or L is 127, and sum|c_q| <= 127 d <= S, as d <= 65,536. With more dimensions rows are scored one by one.
//   Each product is below 2^23 in size, two of them below 2^24: pairs that are added first stay in range as well.
//
// ROW CODES  scale s_x and code as above, in float32. What bounds them comes from float32 sums of squares in the order of a
//   canonical score (16 accumulators, then the tree), and from whole numbers:
//     ||x||    of the canonical x . x
//     ||e_x||  of e_i = fma(-s_x, c_i, x_i), which rounds the exact difference once
//     ||x~||   = s_x sqrt(sum c_i^2), a sum without rounding
//   A term of a sum is rounded at most t = ceil(d / 16) + 6 times, by a factor of 1 +- u, u = 2^-24: its difference, its
//   square's addition and those after it, the tree's four. No term is negative, so the true sum is at most the rounded one
//   over 1 - t u; and each of the d terms may lose 2^-148 in all where float32 is subnormal. Roots of that, in float64, are
//   rounded up. The sums' order being fixed, codes and bounds have the same bits on every instruction set.
//   A row whose canonical x . x is not finite has an infinite norm, and its tile no codes: such a corpus is not searched.
//
// ROWS THAT ARE SCORED ANYWAY  are scored in register blocks, a matrix product whose sums are the canonical ones: they are
//   16 chains, in whatever order scores are taken. Candidates are sorted by row, so that one is read once for all queries
//   that want it: their k most promising rows first, then all that the k-th exact score does not rule out.
//
// ARRAYS WITHOUT CODES  are searched once. B and d decide, beside k and lists: few queries have every row scored; for many,
//   rows are coded block by block and each block is scanned while it is near. Either way is exact. Such an array may hold
//   rows that no score is defined for: *is_sound says that each row's sum of squares, in float32, is at most DENSE_SOUND, a
//   quarter of the largest float32, far enough below the half that is allowed for any rounding of the sum. An array that is
//   not sound has to be looked at row by row; its hits mean nothing, and it is searched again, with codes, if it passes.
//
// FILTERS   A mask, or id lists. A query whose list has less than 1/DENSE_SHORT_LIST of the rows scores them one by one;
//   a longer list becomes a mask of the scan. The rule reads the list and the corpus alone, and either way is exact.
//
// TIES      higher score, then lower id.
// PADDING   id -1, score -inf after counts[b] hits.
// ALIASING  No output overlaps an input or another output.
#pragma once

#include "hopfuse/integers.h"

#include "hopfuse/status.h"

namespace hopfuse {

constexpr int DENSE_TILE = 16;       // rows per tile of codes
constexpr int DENSE_GROUP = 4;       // dimensions that stand together in a tile
constexpr int DENSE_STEP = 12;       // tiles are padded to a multiple of this
constexpr int DENSE_BLOCK_STEP = 4;  // tiles of a block that is scanned together are a multiple of this
constexpr int DENSE_SHORT_LIST = 8;
constexpr int DENSE_LEVELS = 127;                 // of rows' codes, on either side of 0
constexpr int DENSE_WIDE_LEVELS = 32767;          // of queries' codes at most
constexpr int DENSE_CODED_DIM = 1 << 16;          // dimensions that codes have at most
constexpr int DENSE_CODE_SUM = 0x7fffffff / 255;  // S
static_assert(int64_t{DENSE_LEVELS} * DENSE_CODED_DIM <= DENSE_CODE_SUM, "127 levels fit, whatever the query");
constexpr float DENSE_SOUND = 8.5e37f;  // a sum of squares that is not looked at again

enum class DenseType : int { float32 = 0, float16 = 1, bfloat16 = 2 };  // the latter two by their bits

struct DenseVectors {
    int64_t count;
    int32_t dim;
    DenseType type;
    bool cosine;
    const void* data;  // (count, dim), contiguous
    int32_t threads;
};

// Null where there are none; cosine needs them. Codes of `count` rows, padded to a multiple of DENSE_STEP tiles and to whole groups. A tile is
// (dim / 4, 16 rows, 4 dims) of c + 128. For cosine, scale, error and norm_code are those of x / ||x||.
struct DenseCodes {
    uint8_t* codes;    // (tiles, groups, 16, 4)
    float* scale;      // (16 tiles,) s_x
    float* error;      // (16 tiles,) ||e_x|| and the canonical score's rounding, rounded up
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
    const int64_t* allow_ids;     // row ids, ascending, none twice
    bool allow_shared;
    int32_t threads;
};

struct DenseHits {
    int64_t* ids;     // (B, k)
    float* scores;    // (B, k)
    int64_t* counts;  // (B,)
    // (B,) rows scored canonically: what the bound could not rule out. A cost and no answer: queries' codes, and so this
    // count, differ between instruction sets.
    int64_t* rescored;
    bool* is_sound;  // of a corpus without codes, where every row is read; or null
};

}  // namespace hopfuse
