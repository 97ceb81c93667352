// A block of up to 32 queries that walk together on a device: its tables, its states and what its lanes share. The contract is
// kernels/include/hopfuse/ppr.h.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "arguments/ppr_restart_f32.h"
#include "ppr_graph.h"
#include "ppr_kernels.h"

namespace hopfuse::device {

constexpr int PPR_THREADS = 256;
constexpr int LANES_OF_QUAD = 4;     // that a thread reads at once
constexpr int BLOCKS_OF_QUADS = 12;  // of a launch, per multiprocessor: four times as many as run at once

// Restarts on the device, not yet checked.
struct DeviceSeeds {
    Array<int64_t> node;   // (B, width) the caller's ids; -1 is padding
    Array<double> weight;  // (B, width)
    int64_t width;
    bool may_be_empty;  // whether a query without seeds gets no hits, instead of an error
};

// Weights of some nodes for each query, and one of all other nodes: (B, columns) and (B,), in host memory or on the device.
struct NodeWeightArrays {
    std::span<const int32_t> node;  // (columns,) internal nodes
    bool on_device;
    std::span<const float> host_weight, host_other;
    Array<float> weight, other;
};

// A batch of queries with their options. Restarts are those of `indptr`, `node` and `value`, or `seeds`.
struct WalkQueries {
    std::span<const double> damping;  // (B,)
    std::span<const int64_t> indptr;  // (B + 1,)
    std::span<const int32_t> node;    // internal, ascending in a query
    std::span<const double> value;
    std::optional<DeviceSeeds> seeds{};
    std::span<const double> eta{};  // (B, T) edge_type_weights, or no address: all 1
    bool per_type = false;
    std::span<const uint8_t> allow{};  // (B, N) or, shared, (1, N), or no address: all nodes
    bool shares_allow = false;
    std::optional<NodeWeightArrays> node_weights{};
    double tol = 1e-6;
    int64_t max_iter = 0;  // 0: as many as needed

    int64_t batch() const { return static_cast<int64_t>(damping.size()); }
};

// What the blocks of a batch share.
struct WalkBatch {
    std::shared_ptr<const DeviceGraph> graph;
    const WalkQueries& queries;
    Array<uint8_t> shared_allow;  // (N,)
    Array<int32_t> column;        // (N,) the column of each internal node's weights, or -1

    WalkBatch(Queue& queue, std::shared_ptr<const DeviceGraph> on, const WalkQueries& of);
    const GraphRows& rows() const { return *graph->rows; }
};

// The column of each internal node, (N,), or -1 for nodes without one.
std::vector<int32_t> columns_of(std::span<const int32_t> node, int64_t num_nodes);

// The memory through which blocks of a launch join their measurements, 0 before and after a launch. There are further counters: one
// per slice of a long row, and one of the walk's grid barriers.
struct JoinMemory {
    Array<double> columns;
    Array<uint32_t> arrived;

    JoinRoom room() const { return {columns, arrived}; }
    uint32_t* arrived_of_slice() const { return arrived.data() + 1 + JOIN_PLACES; }
    uint32_t* barrier() const { return arrived.data() + arrived.size() - 1; }
};

// The queries `rows` of a batch, ascending, in at least as many lanes.
class PprBlock {
public:
    PprBlock(Queue& queue, const WalkBatch& batch, std::span<const int64_t> rows, int lanes);

    const WalkBatch& batch;
    const DeviceGraph& graph;
    const GraphRows& rows;
    const WalkQueries& queries;
    const int lanes, count;
    const bool symmetric;
    bool per_lane;                // whether lanes have degrees of their own
    std::vector<double> damping;  // (L,)
    // If the number of passes is fixed: the first one to measure, the first after which a proof may be tried, and the last one;
    // else 1, 1 and 0.
    int64_t first_measured, first_tried, last;
    int64_t restarting;  // the most rows that restart

    Array<double> damping64;
    Array<float> damping32;
    Array<double> eta64;
    Array<float> eta32;
    Array<float> mask;        // (N, L) 0 for nodes that are excluded
    Array<float> attraction;  // (N, L) node weights
    Array<float> least;       // (2, L) the smallest node weight, and the smallest factor of a row
    Array<uint64_t> allowed;  // (segments, L) of masked lanes, as in LongRows
    Array<int32_t> before;
    Array<float> scale32, unscale32;
    Array<double> scale64, unscale64;
    Array<uint64_t> longest_row, joined_nodes;  // (L,) or (1,)
    Array<double> volume;                       // (L,) or (1,)

    // (L,) each; those that are read together come first.
    Array<int64_t> limit, measured_from, next_try, passes;
    Array<int32_t> unproven;
    Array<int64_t> last_pass;  // (1,)
    Array<double> residual, bound, per_degree;
    Array<double> slack, missed;
    Array<float> theta, shrink;
    Array<double> anchor;
    Array<int32_t> keeps, accelerates, walking, status;
    Array<int32_t> left;  // (1,)
    Array<uint64_t> restart_words;
    Array<int32_t> restart_rank, marked_words;
    Array<double> restart64;
    Array<float> restart32;
    Array<float> even, odd;  // (N, L) the states; even passes write the first one
    JoinMemory join;

    int64_t num_nodes() const { return rows.num_nodes; }
    size_t states() const { return static_cast<size_t>(rows.num_nodes) * static_cast<size_t>(lanes); }
    size_t width() const { return static_cast<size_t>(lanes); }
    PprScales scales() const;
    RowSet restart_set() const { return {restart_words, restart_rank}; }
    LongRows segments() const { return rows.segments(allowed, before); }
    // The last iterate; after place(), the first buffer.
    PprIterate iterate() const;
    void place() { is_placed_ = true; }
    EdgeKind edge_kind() const;
    // Whether its passes are those of ppr_sliced_f32.cu.
    bool is_sliced() const { return lanes == SLICED_LANES && !per_lane && edge_kind() <= edges_weighted; }
    Array<float> segment_sums(Queue& queue) const;

    // Launches of one thread per item: per entry of the state, per segment of a long row and lane, per tile and lane.
    template <class... P, class... Given>
    void launch_items(Queue& queue, const LaneKernels<void(P...)>& kernel, int64_t items, const Given&... given) const {
        queue.launch(kernel.of(lanes), {blocks(items, PPR_THREADS), PPR_THREADS}, given...);
    }
    template <class... P, class... Given>
    void launch_states(Queue& queue, const LaneKernels<void(P...)>& kernel, const Given&... given) const {
        launch_items(queue, kernel, rows.num_nodes * lanes, given...);
    }
    template <class... P, class... Given>
    void launch_segments(Queue& queue, const LaneKernels<void(P...)>& kernel, const Given&... given) const {
        if (rows.num_segments > 0) launch_items(queue, kernel, rows.num_segments * lanes, given...);
    }
    template <class... P, class... Given>
    void launch_tile_lanes(Queue& queue, const LaneKernels<void(P...)>& kernel, const Given&... given) const {
        launch_items(queue, kernel, rows.num_tiles() * lanes, given...);
    }
    // Threads for the quads of all rows, each with one of several rows, of few enough blocks that they soon join.
    template <class... P, class... Given>
    void launch_quads(Queue& queue, const LaneKernels<void(P...)>& kernel, const Given&... given) const {
        const int64_t most = int64_t{BLOCKS_OF_QUADS} * queue.device().properties().multiprocessors;
        const int64_t needed = blocks(rows.num_nodes * lanes / LANES_OF_QUAD, PPR_THREADS);
        queue.launch(kernel.of(lanes), {std::min(needed, most), PPR_THREADS}, given...);
    }
    // A block of threads per tile.
    template <class... P, class... Given>
    void launch_tiles(Queue& queue, const LaneKernels<void(P...)>& kernel, size_t shared, const Given&... given) const {
        queue.launch(kernel.of(lanes), {blocks(rows.num_tiles(), 1), PPR_THREADS, shared}, given...);
    }

private:
    // What its set-up reads, until the end of the constructor.
    struct Given;
    bool is_placed_ = false;

    void fix_passes();
    Given upload_lanes(Queue& queue, std::span<const int64_t> chosen);
    void read_nodes(Queue& queue, std::span<const int64_t> chosen);
    void read_allowed(Queue& queue);
    void read_degrees(Queue& queue);
    void measure_volume(Queue& queue);
    void allocate(Queue& queue);
    void read_restart(Queue& queue, Given& given);
};

}  // namespace hopfuse::device
