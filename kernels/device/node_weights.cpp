#include "node_weights.h"

#include <vector>

#include "arguments/node_weights_f32.h"
#include "hopfuse/query_status.h"
#include "ppr_block.h"

namespace hopfuse::device {

namespace {

constexpr KernelOf<LargestWeightsKernel> largest_weights{{"node_weights_f32", "node_weights_largest"}};
constexpr KernelOf<ReadWeightsKernel> read_weights{{"node_weights_f32", "node_weights_read"}};
constexpr int THREADS = 256;

}  // namespace

OrderedWeights order_weights(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const GivenWeights& given) {
    queue.keep(graph);
    const GraphRows& rows = *graph->rows;
    const int64_t columns = static_cast<int64_t>(given.node.size()), part = queue.sizes().part;
    OrderedWeights made;
    std::tie(made.weight, made.other, made.status) =
        queue.arrays<float, float, int32_t>(given.batch * columns, given.batch, given.batch);
    if (given.batch == 0) return made;
    const std::vector<int32_t> complete(static_cast<size_t>(given.batch), status_complete);
    const auto [column, started, allowed, lightest] =
        queue.upload(std::span<const int32_t>(columns_of(given.node, rows.num_nodes)),
                     std::span<const int32_t>(complete), given.allow, given.lightest);
    queue.copy(made.status, started);  // a replay must not write to an uploaded constant
    const Array<uint32_t> largest = queue.zeros<uint32_t>(2 * static_cast<size_t>(given.batch));
    queue.launch(largest_weights, {blocks(rows.num_nodes, part) * given.batch, THREADS}, given.weight, columns, column,
                 rows.rows.indptr, graph->out.indptr, given.allow.data() == nullptr ? nullptr : allowed.data(),
                 given.shares_allow || given.allow.data() == nullptr ? 0 : rows.num_nodes, rows.num_nodes, part,
                 largest);
    queue.launch(read_weights, {blocks(columns, part) * given.batch, THREADS}, given.weight, columns, part, largest,
                 given.lightest.data() == nullptr ? nullptr : lightest.data(), made.weight, made.other, made.status);
    return made;
}

}  // namespace hopfuse::device
