// project_f32 on a device. Contract: hopfuse/project.h, whose functions it uses; topk.cu makes lists of the best.
#include "arguments/kernel_type.h"
#include "arguments/project_f32.h"
#include "hopfuse/device.h"
#include "hopfuse/project.h"
#include "hopfuse/query_status.h"
#include "topk_keys.h"

namespace hopfuse {

// A thread's row and its first query. Blocks with the same rows and different queries are neighbours.
struct ProjectPlace {
    int64_t row, query;

    __device__ static ProjectPlace of(int64_t batch) {
        const int64_t groups = (batch + PROJECT_QUERIES - 1) / PROJECT_QUERIES;
        return {blockIdx.x / groups * blockDim.x + threadIdx.x, blockIdx.x % groups * PROJECT_QUERIES};
    }
};

// Computes a row's results for up to PROJECT_QUERIES queries; those beyond the batch repeat the first one.
HOPFUSE_DEVICE void project_row(const ProjectRows& rows, const ProjectPlace& at, const float* scores, int64_t batch,
                                float (&result)[PROJECT_QUERIES]) {
    const float* query[PROJECT_QUERIES];
#pragma unroll
    for (int t = 0; t < PROJECT_QUERIES; ++t) {
        query[t] = scores + (at.query + t < batch ? at.query + t : at.query) * rows.columns;
        result[t] = 0.0f;
    }
    const int64_t end = rows.indptr[at.row + 1];
    HOPFUSE_ROLLED
    for (int64_t entry = rows.indptr[at.row]; entry < end; ++entry) {
        const int32_t column = rows.indices[entry];
#pragma unroll
        for (int t = 0; t < PROJECT_QUERIES; ++t)
            result[t] = add_entry(result[t], rows.weight, entry, query[t][column]);
    }
#pragma unroll
    for (int t = 0; t < PROJECT_QUERIES; ++t) result[t] = scale_sum(rows.scale, at.row, result[t]);
}

HOPFUSE_DEVICE void note_result(int32_t* status, int64_t query, float result) {
    if (!is_finite_sum(result)) atomicMin(status + query, static_cast<int32_t>(status_sum_beyond));
}

}  // namespace hopfuse

// project_check_f32: whether a query's scores are finite, as its status.
// Unit: a query; a block. Block: 256. Registers: <= 40 (occupancy 75 %). Bytes: 4 columns read; 4 written.
extern "C" __global__ void __launch_bounds__(256)
    project_check_f32(const float* scores, int64_t columns, int32_t* status) {
    const float* const mine = scores + blockIdx.x * columns;
    int wrong = 0;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) wrong |= !hopfuse::is_finite_sum(mine[i]);
    wrong = __syncthreads_or(wrong);
    if (threadIdx.x == 0) status[blockIdx.x] = wrong != 0 ? hopfuse::status_bad_score : hopfuse::status_complete;
}

// project_f32: out (B, rows). `status` comes from project_check_f32 and then also has the faults that the contract defines.
// Unit: a row and 4 queries; a thread. Block: 128. Registers: <= 48. Bytes: for 4 queries, 16 a row and 8 an entry (12
// with weights) read, and 16 gathered; 16 a row written.
extern "C" __global__ void __launch_bounds__(128)
    project_f32(const hopfuse::ProjectRows rows, const float* scores, int64_t batch, int32_t* status, float* out) {
    using namespace hopfuse;
    const ProjectPlace at = ProjectPlace::of(batch);
    if (at.row >= rows.rows) return;
    float result[PROJECT_QUERIES];
    project_row(rows, at, scores, batch, result);
#pragma unroll
    for (int t = 0; t < PROJECT_QUERIES; ++t) {
        if (at.query + t >= batch) continue;
        out[(at.query + t) * rows.rows + at.row] = result[t];
        note_result(status, at.query + t, result[t]);
    }
}

// project_keys_u64: the same for rows first_row .. first_row + count as keys (hopfuse/topk_key.h), 0 if a result is not
// above 0.
// Unit: a row and 4 queries; a thread. Block: 128. Registers: <= 56. Bytes: as project_f32, but 32 a row written.
extern "C" __global__ void __launch_bounds__(128)
    project_keys_u64(const hopfuse::ProjectRows rows, const float* scores, int64_t batch, int32_t* status,
                     int64_t first_row, int64_t count, const hopfuse::KeyColumns out) {
    using namespace hopfuse;
    const ProjectPlace at = ProjectPlace::of(batch);
    if (at.row >= out.columns) return;
    const bool is_row = at.row < count;
    float result[PROJECT_QUERIES] = {0.0f, 0.0f, 0.0f, 0.0f};
    const int64_t row = first_row + at.row;
    if (is_row) project_row(rows, {row, at.query}, scores, batch, result);
#pragma unroll
    for (int t = 0; t < PROJECT_QUERIES; ++t) {
        if (at.query + t >= batch) continue;
        put_key(out, at.query + t, at.row, result[t] > 0.0f ? make_topk_key(result[t], row) : 0);
        note_result(status, at.query + t, result[t]);
    }
}

HOPFUSE_KERNEL_TYPE(project_check_f32, hopfuse::ProjectCheckKernel);
HOPFUSE_KERNEL_TYPE(project_f32, hopfuse::ProjectKernel);
HOPFUSE_KERNEL_TYPE(project_keys_u64, hopfuse::ProjectKeysKernel);
