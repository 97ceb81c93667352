// What changes of a few nodes and edges leave of a graph's rows, and which statements of edges they concern. Each function reads
// and writes its arrays once, in order. Functions throw nothing.
#pragma once

#include "graph_layouts.h"
#include "hopfuse/execution.h"
#include "hopfuse/status.h"

namespace hopfuse {

// Entries of the graph after a change that replace those of the same row, source and type, or are new. Rows and sources are nodes
// after the change. An edge of an undirected graph is there in the rows of both its ends, a self-loop once.
struct ChangedEntries {
    int64_t count;
    const int32_t* row;  // ascending, in a row by source, and then by type; each once
    const int32_t* source;
    const uint8_t* type;
    const float* weight;  // 0: there is no such entry
};

// The arrays of Graph in hopfuse/types/graph.py after the change.
struct RowsAfter {
    int64_t num_nodes;   // M
    int64_t* indptr;     // (M + 1,)
    int32_t* indices;    // room for all entries before the change and all changed ones
    float* weight;       // the same; or null: all weights are 1, as are those before the change and the changed ones
    uint8_t* edge_type;  // the same; or null: there is one type
    double* degree;      // (M, num_types)
    int64_t* edges;  // (num_types,) merged edges by type; an undirected one counts once. Holds those before the change
};

// `node` is the node after the change of each node before it, -1 if it is gone, with its edges; ascending where >= 0. Entries
// that are not changed keep their weights. A degree sums float64 weights in the order of the entries, from +0, like that of a graph
// that is built of all its edges: all arrays have the same bits. `stored` is the number of entries.
Status continue_rows(const GraphArrays& before, const int32_t* node, const ChangedEntries& changed,
                     const RowsAfter& after, const Execution& execution, int64_t& stored);

// Statements of edges, one after another. An end is a code from `lowest` on.
template <class Code>
struct EdgeEnds {
    int64_t count;
    const Code* ends;  // (count, 2) source and target
    int64_t lowest;
};

// Writes the statements whose ends are one of the pairs, ascending. `number` has the number of each end,
// counted from `lowest`: 0 .. size - 1, or -1 if it is in no pair. A pair is a * size + b of the numbers of source and target, or
// of the lower and the higher number, if the graph is undirected; `pairs` ascend.
template <class Code>
Status find_pairs(const EdgeEnds<Code>& statements, const int32_t* number, int64_t size, bool directed,
                  const int64_t* pairs, int64_t num_pairs, int64_t* found, int64_t& count);

// Writes the statements with an end or a passage that is gone, ascending. `end_gone` says so of each end, counted from `lowest`,
// and `passage_gone` of each passage, counted from -2: statements of no passage, or of an unknown one, have negative numbers.
template <class Code>
Status find_gone(const EdgeEnds<Code>& statements, const Code* passages, const uint8_t* end_gone,
                 const uint8_t* passage_gone, int64_t* found, int64_t& count);

// The distinct sources from `rows` on in each of the first rows of a graph, in the order of its entries: `indptr` (rows + 1,) and
// `indices`, which has room for all entries of these rows. `often` (N,) is the number of rows with each node, `pairs` the number of
// entries.
Status joined_below(const RowsView& graph, int64_t rows, int64_t* indptr, int32_t* indices, int64_t* often,
                    int64_t& pairs);

}  // namespace hopfuse
