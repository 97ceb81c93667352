#include "../kernels/cpu/graph_changes.h"

#include "common.h"

namespace {

using hopfuse::EdgeEnds;

// Reading so many numbers takes as long as to let another thread of Python run in between.
constexpr size_t FEW_CHANGES = 1 << 15;

int64_t continue_rows(bool directed, In<int64_t> indptr, In<int32_t> indices, std::optional<In<float>> weight,
                      std::optional<In<uint8_t>> edge_type, In<double> degree, In<int32_t> node, In<int32_t> row,
                      In<int32_t> source, In<uint8_t> type, In<float> changed_weight, Out<int64_t> out_indptr,
                      Out<int32_t> out_indices, std::optional<Out<float>> out_weight,
                      std::optional<Out<uint8_t>> out_edge_type, Out<double> out_degree, Out<int64_t> edges) {
    const hopfuse::GraphArrays before{static_cast<int64_t>(node.shape(0)),
                                      static_cast<int64_t>(indices.shape(0)),
                                      static_cast<int32_t>(degree.shape(1)),
                                      directed,
                                      indptr.data(),
                                      indices.data(),
                                      pointer(weight),
                                      pointer(edge_type),
                                      degree.data(),
                                      nullptr,
                                      nullptr};
    const hopfuse::ChangedEntries changed{static_cast<int64_t>(row.shape(0)), row.data(), source.data(), type.data(),
                                          changed_weight.data()};
    const hopfuse::RowsAfter after{static_cast<int64_t>(out_degree.shape(0)),
                                   out_indptr.data(),
                                   out_indices.data(),
                                   out_weight.has_value() ? out_weight->data() : nullptr,
                                   out_edge_type.has_value() ? out_edge_type->data() : nullptr,
                                   out_degree.data(),
                                   edges.data()};
    int64_t stored = 0;
    hopfuse::Execution execution{1};
    Call(execution, indices.size() <= FEW_CHANGES).run([&](const CpuKernels&) {
        return hopfuse::continue_rows(before, node.data(), changed, after, execution, stored);
    });
    return stored;
}

template <class Code>
int64_t find_pairs(In<Code> ends, int64_t lowest, In<int32_t> number, int64_t size, bool directed, In<int64_t> pairs,
                   Out<int64_t> out_found) {
    const EdgeEnds<Code> statements{static_cast<int64_t>(ends.shape(0)), ends.data(), lowest};
    int64_t count = 0;
    hopfuse::Execution execution{1};
    Call(execution, ends.size() <= FEW_CHANGES).run([&](const CpuKernels&) {
        return hopfuse::find_pairs<Code>(statements, number.data(), size, directed, pairs.data(),
                                         static_cast<int64_t>(pairs.shape(0)), out_found.data(), count);
    });
    return count;
}

template <class Code>
int64_t find_gone(In<Code> ends, int64_t lowest, In<Code> passages, In<uint8_t> end_gone, In<uint8_t> passage_gone,
                  Out<int64_t> out_found) {
    const EdgeEnds<Code> statements{static_cast<int64_t>(ends.shape(0)), ends.data(), lowest};
    int64_t count = 0;
    hopfuse::Execution execution{1};
    Call(execution, ends.size() <= FEW_CHANGES).run([&](const CpuKernels&) {
        return hopfuse::find_gone<Code>(statements, passages.data(), end_gone.data(), passage_gone.data(),
                                        out_found.data(), count);
    });
    return count;
}

int64_t joined_below(In<int64_t> indptr, In<int32_t> indices, int64_t rows, Out<int64_t> out_indptr,
                     Out<int32_t> out_indices, Out<int64_t> out_often) {
    const hopfuse::RowsView graph{static_cast<int64_t>(indptr.shape(0)) - 1, indptr.data(), indices.data(), nullptr,
                                  nullptr};
    int64_t pairs = 0;
    hopfuse::Execution execution{1};
    Call(execution, indices.size() <= FEW_CHANGES).run([&](const CpuKernels&) {
        return hopfuse::joined_below(graph, rows, out_indptr.data(), out_indices.data(), out_often.data(), pairs);
    });
    return pairs;
}

}  // namespace

const Binding graph_changes_binding("graph_changes", [](Module& m) {
    m.def("continue_rows", &continue_rows, nb::kw_only(), nb::arg("directed"), nb::arg("indptr"), nb::arg("indices"),
          nb::arg("weight").none(), nb::arg("edge_type").none(), nb::arg("degree"), nb::arg("node"), nb::arg("row"),
          nb::arg("source"), nb::arg("type"), nb::arg("changed_weight"), nb::arg("out_indptr"), nb::arg("out_indices"),
          nb::arg("out_weight").none(), nb::arg("out_edge_type").none(), nb::arg("out_degree"), nb::arg("edges"),
          "Write a graph's rows after changes of nodes and edges; the number of entries.");
    const auto define = [&]<class Code>(Code) {
        m.def("find_pairs", &find_pairs<Code>, nb::kw_only(), nb::arg("ends"), nb::arg("lowest"), nb::arg("number"),
              nb::arg("size"), nb::arg("directed"), nb::arg("pairs"), nb::arg("out_found"),
              "Find the statements of edges between pairs of nodes; their number.");
        m.def("find_gone", &find_gone<Code>, nb::kw_only(), nb::arg("ends"), nb::arg("lowest"), nb::arg("passages"),
              nb::arg("end_gone"), nb::arg("passage_gone"), nb::arg("out_found"),
              "Find the statements of edges that nodes or passages take with them; their number.");
    };
    define(int32_t{}), define(int64_t{});
    m.def("joined_below", &joined_below, nb::kw_only(), nb::arg("indptr"), nb::arg("indices"), nb::arg("rows"),
          nb::arg("out_indptr"), nb::arg("out_indices"), nb::arg("out_often"),
          "Find the later nodes that the first rows of a graph hold; the number of pairs.");
});
