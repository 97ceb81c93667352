// Projection of column scores (nodes) onto rows (passages): the contract.
//
// FORMULA  out[b, p] = scale[p] * (sum over the entries e of row p of w[p, e] * scores[b, e])      (u = B'v)
//          A row without entries has score 0. Without weights w is 1; without `scale` there is no product.
//
// ORDER OF OPERATIONS (law 2)  acc = +0; acc = fma(w, x, acc) in float32 by ascending columns, w = 1 being acc + x; then
//   one rounded product with scale[p].
//
// TOP-K     Only rows with out > 0: higher score first, then lower row. The rest is padding, -1 and -inf.
// INPUTS    Columns ascend within a row. Weights and scales are finite and >= 0, scores finite.
// STATUS    Per query (hopfuse/query_status.h): status_sum_beyond if a result of one of its rows overflows float32, else
//           status_complete. The other results of such a query are those of the formula.
// ALIASING  No output overlaps an input.
//
// SOURCE    u = B'v with the incidence B of entities and passages: PolicyRAG; HippoRAG (NeurIPS 2024), section 2.3.
#pragma once

#include "hopfuse/execution.h"
#include "hopfuse/integers.h"
#include "hopfuse/scalar.h"
#include "hopfuse/status.h"

namespace hopfuse {

struct ProjectRows {
    int64_t rows, columns;
    const int64_t* indptr;   // (rows + 1,)
    const int32_t* indices;  // columns, ascending within a row
    const float* weight;     // of each entry, or null: 1
    const float* scale;      // (rows,), or null: 1
};

struct ProjectArgs {
    ProjectRows incidence;
    int64_t batch;
    const float* scores;  // (B, columns)
    int32_t* status;      // (B,), written
    Execution execution;
};

// (B, width), width >= 1: the best of each query's rows.
struct ProjectHits {
    int64_t width;
    int64_t* ids;
    float* scores;
    int64_t* counts;
};

HOPFUSE_FN float add_entry(float sum, const float* weight, int64_t at, float x) {
    return weight == nullptr ? sum + x : fmaf(weight[at], x, sum);
}

HOPFUSE_FN float scale_sum(const float* scale, int64_t row, float sum) {
    return scale == nullptr ? sum : sum * scale[row];
}

HOPFUSE_FN bool is_finite_sum(float value) { return value - value == 0.0f; }

}  // namespace hopfuse
