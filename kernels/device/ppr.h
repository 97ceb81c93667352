// Personalized PageRank on a device, one block of lanes after another. The contract is kernels/include/hopfuse/ppr.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ppr_topk.h"

namespace hopfuse::device {

// The lanes of blocks that take the least time per query, by bytes; results do not depend on it. More lanes read the graph for
// more queries at once. With fewer lanes, the state from which a pass gathers may fit in half of the L2 cache, whose bandwidth
// is `l2_speedup` times that of the memory.
int most_lanes(int64_t num_nodes, int64_t num_stored, size_t l2_bytes, double l2_speedup);

// `count` queries from `first` on, with the fewest lanes that hold them.
struct LaneBlock {
    int64_t first, count;
    int lanes;
};
std::vector<LaneBlock> lane_blocks(int64_t batch, int most = LANES.back());

// Where (B, N) scores are written, by the caller's node ids: on the device, or in host memory. Those for the host are copied to
// pinned memory behind each block's walk, and from there while the next block walks.
class ScoreTarget {
public:
    explicit ScoreTarget(const Array<float>& there) : there_(there) {}
    explicit ScoreTarget(std::span<float> host) : host_(host) {}

    // The scores of a block on the device, which are elements `first` .. of the target.
    Array<float> part(Queue& queue, size_t first, size_t size) const;
    // Begins to copy them.
    void begin(Queue& queue, const Array<float>& scores, size_t first);
    // Ends the copy, after a later read of the queue.
    void end();

private:
    Array<float> there_;
    std::span<float> host_;
    std::shared_ptr<std::byte[]> on_way_;
    size_t first_ = 0, size_ = 0;
};

// The scores of all nodes. The answers have the evidence, without hits. The caller ends the last copy: ScoreTarget::end().
WalkAnswers ppr(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const WalkQueries& queries,
                ScoreTarget& scores);

// Selection of hits.
struct NodeSelection {
    int64_t k;
    std::span<const int32_t> candidates{};  // internal nodes, or no address: all
    bool stop_when_proven = false;
    bool prove_order = true;  // otherwise only the set
};

// The k best nodes of each query, with the evidence.
WalkAnswers ppr_topk(Queue& queue, const std::shared_ptr<const DeviceGraph>& graph, const WalkQueries& queries,
                     const NodeSelection& selection);

}  // namespace hopfuse::device
