// A graph on a device: its rows, and the tables that depend on the normalisation of edge types. Both are resident, so launchers
// give them to Queue::keep. The contract is kernels/include/hopfuse/ppr.h.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "arguments/ppr_walk.h"
#include "device.h"
#include "packing.h"
#include "slices.h"

namespace hopfuse::device {

// Stored rows in host memory; weights or types that the graph lacks have no address.
struct HostRows {
    std::span<const int64_t> indptr;
    std::span<const int32_t> indices;
    std::span<const float> weight;
    std::span<const uint8_t> edge_type;
};

// The tables that PprGraph derives from degrees.
struct HostDegrees {
    std::span<const double> scale64;
    std::span<const float> scale32;
    std::span<const double> unscale64;  // none with per_type
    std::span<const float> unscale32;
    double volume;
};

// A graph in host memory, by internal node.
struct HostGraph {
    int64_t num_nodes, num_stored;
    int32_t num_types;
    bool directed;
    HostRows rows;
    std::span<const double> degree;  // (N, T)
    std::span<const int32_t> node_of, internal_of;
    int64_t longest_row, joined_nodes;  // the most entries into or out of a node, and the number of nodes with any
};

// Rows on a device; null where HostRows has no address.
struct RowArrays {
    Array<int64_t> indptr;
    EntryArrays stored;
    Array<uint8_t> edge_type;

    Entries entries() const { return stored.entries(); }
};

// The coefficients of the Chebyshev recurrence (Golub & Varga 1961) of passes, after a row of ones: (1 + passes, L), in which lane l
// has the factor damping[l].
std::vector<float> omega_table(std::span<const double> damping, int64_t passes);

// Such tables on the device. Those of lanes with equal factors are kept. Thread-safe.
class OmegaTables {
public:
    // Of at least this many passes, for lanes with these factors, and any lanes beyond them.
    Array<float> get(Queue& queue, std::span<const double> damping, int lanes, int64_t passes);

private:
    struct Table {
        double damping;
        int lanes;
        int64_t passes;
        Array<float> omega;
    };
    static constexpr size_t MOST_TABLES = 16;
    static constexpr int64_t LEAST_PASSES = 64;
    std::mutex mutex_;
    std::deque<Table> tables_;  // oldest first
};

// What does not depend on the normalisation of edge types: stored rows, and the segments of rows longer than PPR_SEGMENT.
struct GraphRows {
    std::shared_ptr<Device> device;
    int64_t num_nodes, num_stored;
    int32_t num_types;
    bool directed;
    RowArrays rows;
    Array<double> degree;
    Array<int32_t> node_of, internal_of;
    Array<uint64_t> longest_row, joined_nodes;  // (1,)

    Array<uint64_t> long_words;  // the set of long rows, as RowSet has it
    Array<int32_t> long_rank;
    int64_t num_long, num_segments;
    Array<int64_t> first_of, segment_begin, segment_end;
    Array<int32_t> row_of;

    Array<uint64_t> every_word;  // the set of all rows
    Array<int32_t> every_rank;

    DeviceSlices slices;  // for few queries without edge types, masks and weights

    double spread;  // the mean number of entries of a row that an entry leads to
    std::shared_ptr<OmegaTables> omegas = std::make_shared<OmegaTables>();

    int64_t num_tiles() const;
    RowSet long_rows() const { return {long_words, long_rank}; }
    RowSet every_row() const { return {every_word, every_rank}; }
    // The segments as kernels read them; `allowed` and `before` are of masked lanes.
    LongRows segments(const uint64_t* allowed, const int32_t* before) const {
        return {segment_begin, segment_end, first_of, row_of, allowed, before};
    }
};

// Rows with the degrees of one normalisation of edge types.
struct DeviceGraph {
    std::shared_ptr<const GraphRows> rows;
    Array<double> scale64, unscale64;
    Array<float> scale32, unscale32;
    Array<double> volume;  // (1,)
    double total_degree;   // the volume, on the host
    double least_degree;   // of nodes with outgoing edges; 1 if there are none
    bool has_out;  // whether `out` are rows of outgoing edges, for degrees of a directed graph that a query sums
    RowArrays out;
};

// They copy host arrays to the device under Queue::Resident; NoRoom if it lacks the memory.
std::shared_ptr<const GraphRows> upload_rows(Queue& queue, const HostGraph& graph);
std::shared_ptr<const DeviceGraph> upload_graph(Queue& queue, std::shared_ptr<const GraphRows> rows,
                                                const HostDegrees& degrees, const HostRows* out);

}  // namespace hopfuse::device
