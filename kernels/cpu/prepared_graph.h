// A graph prepared for ppr_f32 on a CPU: its own arrays, and the tables and layouts derived from them, each made by the first
// batch that reads it. Tables that do not depend on the normalisation of edge types are shared by both.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph_layouts.h"
#include "hopfuse/ppr.h"
#include "hopfuse/status.h"

namespace hopfuse {

// The lanes of the blocks that a batch is divided into, on a graph of this size.
std::vector<int> ppr_lanes(int64_t nodes, int64_t stored, int64_t queries, int32_t threads);

// How a batch walks: the most threads that it uses, and the most queries that walk together.
struct PprCourse {
    int32_t threads = 1;
    int lanes = 0;
};

enum class Layout { given, by_length, by_window };

// Thread-safe. One thread makes tables at a time; others wait for it, unless they are stopped, and use the same. A call that
// is stopped or finds no memory leaves what it has completed, and so does one whose thread a forked child lacks.
class PreparedGraph {
public:
    // Sizes that only tests change.
    struct Sizes {
        int64_t cached_nodes = PPR_CACHED_NODES;  // larger graphs are tiled for few lanes
        TileSizes tile = {int64_t{1} << 16, int64_t{1} << 16};
    };

    // The arrays must outlive this.
    PreparedGraph(const GraphArrays& arrays, const Sizes& sizes);
    PreparedGraph(const PreparedGraph&) = delete;
    PreparedGraph& operator=(const PreparedGraph&) = delete;

    const GraphArrays& arrays() const { return arrays_; }

    // The bytes of all tables made so far, beside the graph's own arrays.
    int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // The graph as the kernels read it for a batch, with the layouts of all blocks that it may be divided into, and how it
    // walks. With `regroups`, unfinished queries move to blocks of fewer lanes.
    Status view(const PprQueries& queries, bool regroups, const PprGraph*& found, PprCourse& course);

    // The graph in one layout; with_out: with outgoing rows. Rows by length have their slices.
    Status view(Layout layout, bool per_type, bool with_out, const Execution& execution, const PprGraph*& found);

    // The graph as local walks read it: its rows as given, and degrees by type (typed) or over all types.
    Status push_view(bool typed, const Execution& execution, const PprGraph*& found);

    // The tiles, or null if PPR_TILE rows have too many entries.
    Status tiles(bool per_type, const Execution& execution, const PprTiles*& found);

    // Single tables, by internal node: what a device reads.
    Status counts(const Execution& execution, EntryCounts& found);
    Status degrees(bool per_type, const Execution& execution, const DegreeTables*& found);
    Status outgoing(const Execution& execution, const StoredRows*& found);

private:
    static constexpr int layouts = 3;

    // The tables of rows and nodes in another layout than `given`.
    struct Rows {
        RowOrder order;
        StoredRows rows;
        Array<double> degree;
        Array<int32_t> node_of, row_of;
    };
    // Entries in another order, as the kernels read them without and with shares.
    template <class Entries, class View>
    struct Reordered {
        Entries entries;
        Array<float> share32;
        View view[2];
    };
    class Turn;

    const GraphArrays arrays_;
    const Sizes sizes_;
    std::atomic<int64_t> bytes_{0};
    // For batches, by normalisation, outgoing rows, and layouts for blocks of few and of many lanes.
    std::atomic<const PprGraph*> for_batch_[2][2][2][2] = {};
    std::atomic<const PprGraph*> for_push_[2] = {};  // without and with types
    std::atomic<int64_t> turn_{0};                   // the process of the thread whose turn it is, or 0

    // The following belong to that thread.
    std::unique_ptr<EntryCounts> counts_;
    std::unique_ptr<Rows> rows_[layouts];
    std::unique_ptr<DegreeTables> degrees_[layouts][2];
    std::unique_ptr<Array<float>> shares_[layouts];
    std::unique_ptr<StoredRows> out_[layouts];
    std::unique_ptr<PprGraph> in_layout_[layouts][2][2];
    std::unique_ptr<Reordered<Slices, PprSlices>> slices_;
    std::unique_ptr<Reordered<Tiles, PprTiles>> tiles_;
    bool cannot_tile_ = false;
    std::unique_ptr<Array<double>> total_degree_;
    std::unique_ptr<PprGraph> kept_for_push_[2];
    std::unique_ptr<PprGraph> kept_for_batch_[2][2][2][2];

    template <class Make>
    Status in_turn(const Execution& execution, const Make& make);
    const PprGraph& make_for_batch(bool per_type, bool with_out, bool few, bool many, const Execution& execution);
    const PprGraph& make_in_layout(Layout layout, bool per_type, bool with_out, const Execution& execution);
    const PprSlices& make_slices(bool per_type, const Execution& execution);
    const PprTiles* make_tiles(bool per_type, const Execution& execution);
    const PprGraph& make_for_push(bool typed, const Execution& execution);
    const EntryCounts& make_counts(const Execution& execution);
    const Rows& make_rows(Layout layout, const Execution& execution);
    const DegreeTables& make_degrees(Layout layout, bool per_type, const Execution& execution);
    const Array<float>& make_shares(Layout layout, const Execution& execution);
    const StoredRows& make_out(Layout layout, const Execution& execution);
    RowsView rows_in(Layout layout, const Execution& execution);
    template <class Entries, class View>
    const View& with_shares(Reordered<Entries, View>& made, Layout layout, bool per_type, const Execution& execution);
    template <class T>
    T& keep(std::unique_ptr<T>& kept, T&& made, int64_t bytes);
};

}  // namespace hopfuse
