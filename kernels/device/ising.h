// Ising mean-field reranking on a device. The contract is hopfuse/ising.h.
#pragma once

#include <cstdint>
#include <memory>

#include "hits.h"
#include "hopfuse/ising.h"
#include "ppr_graph.h"

namespace hopfuse::device {

// The k best of each query's candidates by their mean field. A candidate that is no node of the graph makes the status that of
// a document outside.
CheckedHits ising(Queue& queue, const std::shared_ptr<const GraphRows>& graph, const HitArrays& candidates,
                  const IsingModel& model, int64_t k);

}  // namespace hopfuse::device
