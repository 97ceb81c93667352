// The orders of a graph's rows and entries, and the tables derived from its degrees, that the kernels of ppr_f32 read: PprGraph,
// PprSlices and PprTiles in hopfuse/ppr.h. Functions throw std::bad_alloc, and Stopped if their call is to stop.
#pragma once

#include <optional>

#include "array.h"
#include "hopfuse/execution.h"
#include "hopfuse/ppr.h"

namespace hopfuse {

// A graph's own arrays, by internal node: the fields of PprGraph with these names.
struct GraphArrays {
    int64_t num_nodes, num_stored;
    int32_t num_types;
    bool directed;
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;
    const double* degree;
    const int32_t* node_of;
    const int32_t* row_of;
};

// Rows as PprGraph has them. Weights or types that the graph lacks have no address.
struct StoredRows {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<float> weight;
    Array<uint8_t> edge_type;

    int64_t bytes() const { return indptr.bytes() + indices.bytes() + weight.bytes() + edge_type.bytes(); }
};

// The same rows, whoever owns them.
struct RowsView {
    int64_t num_rows;
    const int64_t* indptr;
    const int32_t* indices;
    const float* weight;
    const uint8_t* edge_type;

    int64_t num_stored() const { return indptr[num_rows]; }
};

RowsView view_of(const GraphArrays& graph);
RowsView view_of(const StoredRows& rows);

// An order of rows; `place` and `internal` are those of PprGraph.
struct RowOrder {
    Array<int32_t> place, internal;

    int64_t bytes() const { return place.bytes() + internal.bytes(); }
};

// Rows by length, longest first; rows of equal length keep their order. With a window, rows of that many at a time.
RowOrder order_by_length(const RowsView& rows, const Execution& execution);
RowOrder order_by_length(const RowsView& rows, int64_t window, const Execution& execution);

// Rows in another order, with sources as stored rows; the entries of a row keep their order.
StoredRows in_order(const RowsView& rows, const RowOrder& order, const Execution& execution);

// A table of nodes in another order, with `width` values of each node; empty if the table is.
template <class T>
Array<T> in_order(const T* table, int32_t width, const RowOrder& order, const Execution& execution);

// The stored row of each of the caller's ids, from the internal node of each.
Array<int32_t> rows_of(const int32_t* internal_of, const RowOrder& order, const Execution& execution);

// The rows of outgoing edges of a directed graph, with ascending targets.
StoredRows outgoing_rows(const RowsView& rows, const Execution& execution);

// The most entries into or out of a node, and the number of nodes with any.
struct EntryCounts {
    int64_t longest_row, joined_nodes;
};
EntryCounts count_entries(const GraphArrays& graph, const Execution& execution);

// Degrees (N, T) of nodes in any order.
struct NodeDegrees {
    int64_t num_nodes;
    int32_t num_types;
    const double* degree;
};

// (N,) degrees over all types, summed in their order.
Array<double> total_degrees(const NodeDegrees& nodes, const Execution& execution);

// The tables that PprGraph derives from degrees; unscale64 and unscale32 have no address with per_type, whose volume is 0.
struct DegreeTables {
    Array<double> scale64;
    Array<float> scale32;
    Array<double> unscale64;
    Array<float> unscale32;
    double volume = 0.0;

    int64_t bytes() const { return scale64.bytes() + scale32.bytes() + unscale64.bytes() + unscale32.bytes(); }
};
DegreeTables degree_tables(const NodeDegrees& nodes, bool per_type, const Execution& execution);

// scale32 of the source and the type of each entry.
Array<float> entry_shares(const RowsView& rows, const float* scale32, int32_t num_types, const Execution& execution);

// The tables of PprSlices, without shares.
struct Slices {
    int64_t long_rows = 0;
    Array<int64_t> indptr;
    Array<int32_t> segment, row_segments;
    Array<uint16_t> narrow;
    Array<int32_t> wide;
    Array<float> weight;
    Array<uint8_t> edge_type;

    PprSlices view() const;
    int64_t bytes() const;
};
Slices slices_of(const RowsView& by_length, const Execution& execution);
Array<float> entry_shares(const Slices& slices, const float* scale32, int32_t num_types, const Execution& execution);

// The nodes of a strip and the most units of a block, both at most 65,536.
struct TileSizes {
    int64_t strip, units;
};

// The tables of PprTiles, without shares.
struct Tiles {
    int64_t num_rows = 0, strip = 0, most_units = 0;
    Array<int64_t> block_row, begin;
    Array<uint16_t> unit, source;
    Array<float> weight;
    Array<uint8_t> edge_type;

    PprTiles view() const;
    int64_t bytes() const;
};
// Nothing if PPR_TILE rows have more units than a block can hold.
std::optional<Tiles> tiles_of(const RowsView& rows, const TileSizes& sizes, const Execution& execution);
Array<float> entry_shares(const Tiles& tiles, const float* scale32, int32_t num_types, const Execution& execution);

}  // namespace hopfuse
