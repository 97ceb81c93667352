#include "../kernels/cpu/inputs.h"

#include "common.h"

namespace {

// Reading this many numbers takes as long as to let another thread of Python run in between.
constexpr size_t FEW_NUMBERS = 1 << 16;

using hopfuse::NodeWeightFault;
using hopfuse::RestartFault;
using hopfuse::VectorFault;

// The fault of the restarts and its place, or None.
std::optional<nb::tuple> read_restarts(In<int64_t> indptr, In<int64_t> node, In<double> weight, In<int32_t> internal_of,
                                       bool may_be_empty, Out<int64_t> out_indptr, Out<int32_t> out_node,
                                       Out<double> out_weight) {
    const hopfuse::GivenRestarts given{
        static_cast<int64_t>(indptr.shape(0)) - 1,  indptr.data(),      node.data(), weight.data(),
        static_cast<int64_t>(internal_of.shape(0)), internal_of.data(), may_be_empty};
    hopfuse::RestartFinding found;
    hopfuse::Execution execution{1};
    Call(execution).run([&](const CpuKernels&) {
        return hopfuse::read_restarts(given, {out_indptr.data(), out_node.data(), out_weight.data()}, found);
    });
    if (found.fault == RestartFault::none) return std::nullopt;
    return nb::make_tuple(static_cast<int>(found.fault), found.at);
}

// An entry of a dict whose key and value are plain numbers; false if they are not, or are no entry of a restart.
bool read_entry(PyObject* key, PyObject* value, int64_t nodes, int64_t& node, double& weight) {
    if (Py_TYPE(key) != &PyLong_Type) return false;
    if (Py_TYPE(value) != &PyFloat_Type && Py_TYPE(value) != &PyLong_Type) return false;
    node = PyLong_AsLongLong(key), weight = PyFloat_AsDouble(value);
    if (PyErr_Occurred() == nullptr) return node >= 0 && node < nodes;
    PyErr_Clear();  // a number that is too large
    return false;
}

// Reads restarts from dicts of plain numbers, the usual form; the number of entries that count. None if some are not plain, if
// there are more than fit, or if there is a fault.
std::optional<int64_t> read_dicts(nb::list rows, In<int32_t> internal_of, bool may_be_empty, Out<int64_t> out_indptr,
                                  Out<int32_t> out_node, Out<double> out_weight) {
    const int64_t batch = static_cast<int64_t>(rows.size()), nodes = static_cast<int64_t>(internal_of.shape(0));
    if (static_cast<int64_t>(out_indptr.shape(0)) != batch + 1) return std::nullopt;
    std::vector<int64_t> indptr{0}, node;
    std::vector<double> weight;
    for (nb::handle row : rows) {
        if (Py_TYPE(row.ptr()) != &PyDict_Type) return std::nullopt;
        PyObject *key = nullptr, *value = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(row.ptr(), &at, &key, &value) != 0;) {
            node.emplace_back(), weight.emplace_back();
            if (!read_entry(key, value, nodes, node.back(), weight.back())) return std::nullopt;
        }
        indptr.push_back(static_cast<int64_t>(node.size()));
    }
    if (node.size() > out_node.shape(0) || node.size() > out_weight.shape(0)) return std::nullopt;
    const hopfuse::GivenRestarts given{batch, indptr.data(),      node.data(), weight.data(),
                                       nodes, internal_of.data(), may_be_empty};
    hopfuse::RestartFinding found;
    const hopfuse::RestartRows made{out_indptr.data(), out_node.data(), out_weight.data()};
    if (hopfuse::read_restarts(given, made, found) != hopfuse::Status::ok) throw std::bad_alloc();
    if (found.fault != RestartFault::none) return std::nullopt;
    return made.indptr[batch];
}

// The fault of the weights with its row and column, or None.
std::optional<nb::tuple> read_node_weights(std::optional<In<float>> single, std::optional<In<double>> wide,
                                           In<int32_t> node, In<uint8_t> is_weighted, In<uint8_t> has_entries,
                                           std::optional<In<uint8_t>> allow, Out<float> weight,
                                           Out<float> other_weight) {
    hopfuse::GivenNodeWeights given{};
    given.batch = static_cast<int64_t>(weight.shape(0)), given.columns = static_cast<int64_t>(weight.shape(1));
    given.single = pointer(single), given.wide = pointer(wide);
    given.num_nodes = static_cast<int64_t>(has_entries.shape(0)), given.node = node.data();
    given.is_weighted = is_weighted.data(), given.has_entries = has_entries.data();
    given.allow = pointer(allow), given.allow_shared = allow.has_value() && allow->shape(0) == 1;
    hopfuse::NodeWeightFinding found;
    hopfuse::Execution execution{1};
    Call(execution).run([&](const CpuKernels&) {
        return hopfuse::read_node_weights(given, weight.data(), other_weight.data(), found);
    });
    if (found.fault == NodeWeightFault::none) return std::nullopt;
    return nb::make_tuple(static_cast<int>(found.fault), found.row, found.column);
}

// The row of the first vector that cannot be scored, and whether it is too small; None if all can.
std::optional<nb::tuple> first_unscorable(In<float> vectors, bool needs_length, int threads) {
    hopfuse::VectorFinding found;
    hopfuse::Execution execution{threads};
    Call(execution, vectors.size() <= FEW_NUMBERS).run([&](const CpuKernels&) {
        return hopfuse::first_unscorable(vectors.data(), static_cast<int64_t>(vectors.shape(0)),
                                         static_cast<int64_t>(vectors.shape(1)), needs_length, execution, found);
    });
    if (found.fault == VectorFault::none) return std::nullopt;
    return nb::make_tuple(found.row, found.fault == VectorFault::too_small);
}

}  // namespace

const Binding inputs_binding("inputs", [](Module& m) {
    m.attr("RESTART_OUTSIDE") = static_cast<int>(RestartFault::outside);
    m.attr("RESTART_BAD_WEIGHT") = static_cast<int>(RestartFault::bad_weight);
    m.attr("RESTART_EMPTY_ROW") = static_cast<int>(RestartFault::empty_row);
    m.attr("RESTART_SUM_BEYOND") = static_cast<int>(RestartFault::sum_beyond);
    m.def("read_restarts", &read_restarts, nb::arg("indptr"), nb::arg("node"), nb::arg("weight"),
          nb::arg("internal_of"), nb::arg("may_be_empty"), nb::arg("out_indptr"), nb::arg("out_node"),
          nb::arg("out_weight"), "Bring restarts into the order of walks; the fault and where it is, or None.");
    m.def("read_dicts", &read_dicts, nb::arg("rows"), nb::arg("internal_of"), nb::arg("may_be_empty"),
          nb::arg("out_indptr"), nb::arg("out_node"), nb::arg("out_weight"),
          "Read restarts from dicts of plain numbers; how many entries count, or None for any other input.");
    m.attr("NODE_WEIGHT_ALL_ZERO") = static_cast<int>(NodeWeightFault::all_zero);
    m.def("read_node_weights", &read_node_weights, nb::arg("single").none(), nb::arg("wide").none(), nb::arg("node"),
          nb::arg("is_weighted"), nb::arg("has_entries"), nb::arg("allow").none(), nb::arg("weight"),
          nb::arg("other_weight"),
          "Bring node weights into the range of walks; the fault, its row and column, or None.");
    m.def("first_unscorable", &first_unscorable, nb::arg("vectors"), nb::arg("needs_length"), nb::arg("threads"),
          "The first vector without a float32 score, and whether it is too small for one; or None.");
});
