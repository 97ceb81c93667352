// Ising mean-field reranking on a device. The contract is hopfuse/ising.h. For the binding alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "arguments/ising_f32.h"
#include "hits.h"
#include "hopfuse/ising.h"
#include "hopfuse/query_status.h"
#include "ppr_graph.h"

namespace hopfuse::device {

inline constexpr KernelOf<IsingKernel> ising_f32{{"ising_f32", "ising_f32"}};

// The k best of each query's candidates by their mean field. A candidate that is no node of the graph makes the status that of
// a document outside.
inline CheckedHits ising(Queue& queue, const std::shared_ptr<const GraphRows>& graph, const HitArrays& candidates,
                         const IsingModel& model, int64_t k) {
    const int64_t batch = candidates.batch, width = candidates.k;
    if (batch == 0 || width == 0) {
        const std::vector<int32_t> complete(static_cast<size_t>(batch), status_complete);
        return {no_hits(queue, batch, k), queue.upload(complete)};
    }
    queue.keep(graph);
    const auto [best, status] = empty_checked_hits(queue, batch, k);
    constexpr int WARP = 32, MOST_THREADS = 256;
    const int threads = static_cast<int>(std::min<int64_t>(MOST_THREADS, WARP * width));
    // Numbers of a block: a row for each candidate, and one for each warp.
    const int64_t couplings = width * width, shared = width * (threads / WARP);
    const int64_t nbytes =
        couplings * static_cast<int64_t>(sizeof(float)) + shared * static_cast<int64_t>(sizeof(double));
    const int64_t at_once = std::min(batch, std::max<int64_t>(1, queue.sizes().workspace / nbytes));
    const Array<float> coupling_room = queue.empty<float>(static_cast<size_t>(at_once * couplings));
    const Array<double> shared_room = queue.empty<double>(static_cast<size_t>(at_once * shared));
    const IsingArguments arguments{
        .batch = batch,
        .width = width,
        .ids = candidates.ids,
        .scores = candidates.scores,
        .counts = candidates.counts,
        .graph = {graph->num_nodes, graph->rows.indptr, graph->rows.entries(), graph->internal_of},
        .model = model,
        .k = k,
        .out_ids = best.ids,
        .out_scores = best.scores,
        .out_counts = best.counts,
        .status = status,
        .coupling_room = coupling_room,
        .shared_room = shared_room};
    const size_t room = 3 * sizeof(float) * static_cast<size_t>(width);
    queue.launch(ising_f32, {at_once, threads, room}, arguments);
    return {best, status};
}

}  // namespace hopfuse::device
