// Personalized PageRank for C++ programs, on a graph in compressed rows: docs/guides/cpp.md has a program. Installed as
// hopfuse/cpu/csr_graph.h. Answers have the bits of the Python package's.
#pragma once

#include <memory>

#include "hopfuse/ppr.h"
#include "hopfuse/status.h"

namespace hopfuse {

// Rows of incoming edges. An undirected edge is in the rows of both its ends, a self-loop in one.
struct CsrRows {
    int64_t num_nodes;       // N, below 2^31
    const int64_t* indptr;   // (N + 1,) row v has the entries indptr[v] .. indptr[v + 1] - 1
    const int32_t* indices;  // the source of each entry, strictly ascending within a row
    const float* weight;     // of each entry, a normal number above 0; or null: all 1
    bool directed;
};

// A graph with the tables that walks read, each made by the first walk that needs it. Thread-safe once it is open.
class CsrGraph {
public:
    CsrGraph();
    ~CsrGraph();
    CsrGraph(CsrGraph&&) noexcept;
    CsrGraph& operator=(CsrGraph&&) noexcept;

    // Reads the rows, whose arrays must outlive this and stay as they are. Status::bad_argument if they are not as described
    // above, if a directed graph is given as an undirected one, or if a node's weights sum to more than half of float32's range.
    Status open(const CsrRows& rows);

    // Scores of all nodes, (B, N). The nodes of a restart may be in any order, each once; -1 is padding. Status::bad_argument
    // for a graph that is not open; for a node outside it or that `allow` excludes, weights that are negative, not finite or
    // without a finite sum, or a restart without weight; for damping that is not at least 0 and in float32 below 1; for a
    // negative pass limit; and for edge types and node weights, which only the Python package prepares.
    Status ppr(const PprQueries& queries, float* scores, const PprEvidence& evidence) const;

    // The k best nodes of each query. The same errors, and Status::bad_argument for candidates that do not ascend or are no
    // nodes, and for a k beyond their number or `width`.
    Status ppr_topk(const PprQueries& queries, const PprTopk& top, const PprEvidence& evidence) const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;

    Status walk(const PprQueries& queries, float* scores, const PprTopk* top, const PprEvidence& evidence) const;
};

}  // namespace hopfuse
