#include "csr_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "float_mode.h"
#include "inputs.h"
#include "kernels.h"
#include "prepared_graph.h"
#include "threads.h"

namespace hopfuse {

namespace {

bool has_sources(const CsrRows& rows, int64_t row) {
    int64_t before = -1;
    for (int64_t e = rows.indptr[row]; e < rows.indptr[row + 1]; ++e) {
        if (rows.indices[e] <= before || rows.indices[e] >= rows.num_nodes) return false;
        if (rows.weight != nullptr && !(rows.weight[e] > 0.0f && std::isnormal(rows.weight[e]))) return false;
        before = rows.indices[e];
    }
    return true;
}

bool are_rows(const CsrRows& rows) {
    if (rows.num_nodes < 0 || rows.num_nodes > std::numeric_limits<int32_t>::max() || rows.indptr[0] != 0) return false;
    for (int64_t row = 0; row < rows.num_nodes; ++row)
        if (rows.indptr[row + 1] < rows.indptr[row]) return false;
    for (int64_t row = 0; row < rows.num_nodes; ++row)
        if (!has_sources(rows, row)) return false;
    return true;
}

bool is_symmetric(const RowsView& rows) {
    const StoredRows out = outgoing_rows(rows, {1});
    const int64_t entries = rows.num_stored();
    return std::equal(rows.indptr, rows.indptr + rows.num_rows + 1, out.indptr.data()) &&
           std::equal(rows.indices, rows.indices + entries, out.indices.data()) &&
           (rows.weight == nullptr || std::equal(rows.weight, rows.weight + entries, out.weight.data()));
}

// Weights out of each node, summed in the order of the entries.
Array<double> out_degrees(const CsrRows& rows) {
    Array<double> degree(rows.num_nodes);
    std::fill_n(degree.data(), degree.size(), 0.0);
    for (int64_t e = 0; e < rows.indptr[rows.num_nodes]; ++e)
        degree[rows.indices[e]] += rows.weight == nullptr ? 1.0 : double{rows.weight[e]};
    return degree;
}

bool may_walk(const PprQueries& queries) {
    const bool is_plain = queries.eta == nullptr && queries.node_weight == nullptr && !queries.per_type;
    return is_plain && queries.batch >= 0 && queries.max_iter >= 0 &&
           std::all_of(queries.damping, queries.damping + queries.batch,
                       [](double d) { return d >= 0.0 && static_cast<float>(d) < 1.0f; });
}

bool may_rank(const PprTopk& top, int64_t nodes) {
    const int32_t *const first = top.candidates, *const end = first + (first == nullptr ? 0 : top.num_candidates);
    const bool ascends = std::adjacent_find(first, end, std::greater_equal<>()) == end;
    if (first != end && !(ascends && *first >= 0 && end[-1] < nodes)) return false;
    return top.k >= 0 && top.k <= (first == nullptr ? nodes : top.num_candidates) && top.k <= top.width;
}

}  // namespace

// What the rows of a graph lack.
struct CsrGraph::Parts {
    Array<double> degree;
    Array<int32_t> same;  // every node, as the order of rows is the caller's
    PreparedGraph graph;

    Parts(const CsrRows& rows, Array<double> degrees, Array<int32_t> nodes)
        : degree(std::move(degrees)), same(std::move(nodes)),
          graph({rows.num_nodes, rows.indptr[rows.num_nodes], 1, rows.directed, rows.indptr, rows.indices, rows.weight,
                 nullptr, degree.data(), same.data(), same.data()},
                {}) {}
};

CsrGraph::CsrGraph() = default;
CsrGraph::~CsrGraph() = default;
CsrGraph::CsrGraph(CsrGraph&&) noexcept = default;
CsrGraph& CsrGraph::operator=(CsrGraph&&) noexcept = default;

Status CsrGraph::open(const CsrRows& rows) {
    const FloatMode mode;
    return status_of([&] {
        constexpr double most = double{std::numeric_limits<float>::max()} / 2;
        if (!are_rows(rows)) return Status::bad_argument;
        const RowsView view{rows.num_nodes, rows.indptr, rows.indices, rows.weight, nullptr};
        if (!rows.directed && !is_symmetric(view)) return Status::bad_argument;
        Array<double> degree = out_degrees(rows);
        if (std::any_of(degree.data(), degree.data() + degree.size(), [](double sum) { return sum > most; }))
            return Status::bad_argument;
        Array<int32_t> same(rows.num_nodes);
        std::iota(same.data(), same.data() + same.size(), 0);
        parts_ = std::make_unique<Parts>(rows, std::move(degree), std::move(same));
        return Status::ok;
    });
}

Status CsrGraph::walk(const PprQueries& queries, float* scores, const PprTopk* top, const PprEvidence& evidence) const {
    if (parts_ == nullptr || !may_walk(queries)) return Status::bad_argument;
    return status_of([&] {
        const int64_t nodes = parts_->graph.arrays().num_nodes, entries = queries.restart_indptr[queries.batch];
        Array<int64_t> indptr(queries.batch + 1), given(entries);
        Array<int32_t> node(entries);
        Array<double> value(entries);
        std::copy_n(queries.restart_node, entries, given.data());
        RestartFinding found;
        const Status read = read_restarts({queries.batch, queries.restart_indptr, given.data(), queries.restart_value,
                                           nodes, parts_->same.data(), false},
                                          {indptr.data(), node.data(), value.data()}, found);
        if (read != Status::ok) return read;
        PprQueries own = queries;
        own.restart_indptr = indptr.data(), own.restart_node = node.data(), own.restart_value = value.data();
        if (found.fault != RestartFault::none) return Status::bad_argument;
        for (int64_t row = 0; row < own.batch; ++row) {
            const int32_t *const first = node.data() + indptr[row], *const end = node.data() + indptr[row + 1];
            if (std::adjacent_find(first, end) != end) return Status::bad_argument;
            const uint8_t* const allow =
                own.allow == nullptr ? nullptr : own.allow + (own.allow_shared ? 0 : row * nodes);
            if (allow != nullptr && std::any_of(first, end, [&](int32_t seed) { return allow[seed] == 0; }))
                return Status::bad_argument;
        }
        const PprGraph* view = nullptr;
        PprCourse course;
        const Status made = parts_->graph.view(own, top != nullptr && top->stop_when_proven, view, course);
        return made == Status::ok ? best_variant().ppr_f32(*view, own, scores, top, evidence) : made;
    });
}

Status CsrGraph::ppr(const PprQueries& queries, float* scores, const PprEvidence& evidence) const {
    const FloatMode mode;
    return walk(queries, scores, nullptr, evidence);
}

Status CsrGraph::ppr_topk(const PprQueries& queries, const PprTopk& top, const PprEvidence& evidence) const {
    const FloatMode mode;
    if (parts_ == nullptr || !may_rank(top, parts_->graph.arrays().num_nodes)) return Status::bad_argument;
    return walk(queries, nullptr, &top, evidence);
}

}  // namespace hopfuse
