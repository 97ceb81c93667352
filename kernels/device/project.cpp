#include "project.h"

#include <algorithm>

namespace hopfuse::device {

namespace {

constexpr KernelOf<ProjectCheckKernel> check_kernel{{"project_f32", "project_check_f32"}};
constexpr KernelOf<ProjectKernel> project_kernel{{"project_f32", "project_f32"}};
constexpr KernelOf<ProjectKeysKernel> keys_kernel{{"project_f32", "project_keys_u64"}};

// Checks the scores; returns each query's status.
Array<int32_t> check(Queue& queue, const Projection& given) {
    const Array<int32_t> status = queue.empty<int32_t>(static_cast<size_t>(given.batch));
    if (given.batch > 0)
        queue.launch(check_kernel, {given.batch, PROJECT_CHECK_THREADS}, given.scores, given.columns, status);
    return status;
}

// The rows, and the scale, which was uploaded.
struct ScaledRows {
    ProjectRows rows;
    Array<float> scale;
};

ScaledRows rows_of(Queue& queue, const Projection& given) {
    queue.keep(given.incidence);
    const DeviceIncidence& there = *given.incidence;
    ScaledRows made;
    if (given.scale != nullptr)
        made.scale = std::get<0>(queue.upload(std::span<const float>(given.scale, static_cast<size_t>(there.rows))));
    made.rows = {there.rows, given.columns, there.indptr, there.indices, there.weights, made.scale};
    return made;
}

Grid grid_of(int64_t rows, int64_t batch) {
    return {blocks(rows, PROJECT_THREADS) * blocks(batch, PROJECT_QUERIES), PROJECT_THREADS};
}

}  // namespace

Projected project(Queue& queue, const Projection& given) {
    const int64_t rows = given.incidence->rows;
    const Array<float> out = queue.empty<float>(static_cast<size_t>(given.batch * rows));
    const Array<int32_t> status = check(queue, given);
    if (given.batch > 0 && rows > 0)
        queue.launch(project_kernel, grid_of(rows, given.batch), rows_of(queue, given).rows, given.scores, given.batch,
                     status, out);
    return {out, status};
}

TopkHits project_topk(Queue& queue, const Projection& given, int64_t k) {
    const int64_t rows = given.incidence->rows, kept = std::min(k, rows);
    if (given.batch == 0 || kept == 0) {
        TopkHits none = TopkHits::none(queue, given.batch, k);
        none.status = check(queue, given);
        return none;
    }
    const TopkHits hits = TopkHits::empty(queue, given.batch, k);
    const Array<int32_t> status = check(queue, given);
    const ScaledRows scaled = rows_of(queue, given);
    for (const QueryRange& range : query_batches(queue, given.batch, kept, rows)) {
        const auto first_query = static_cast<size_t>(range.begin), count = static_cast<size_t>(range.count());
        const auto columns = static_cast<size_t>(given.columns);
        const Array<float> scores = given.scores.part(first_query * columns, count * columns);
        const Array<int32_t> own = status.part(first_query, count);
        Selection selection(queue, kept, own, hits.rows(range.begin, range.end));
        selection.of_all(rows, [&](int64_t first, int64_t of_tile, const KeyColumns& out) {
            queue.launch(keys_kernel, grid_of(out.columns, range.count()), scaled.rows, scores, range.count(), own,
                         first, of_tile, out);
        });
    }
    return hits;
}

}  // namespace hopfuse::device
