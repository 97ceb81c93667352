#include "prepared_graph.h"

#include <string>

namespace {

using hopfuse::GraphArrays;
using hopfuse::Layout;
using hopfuse::PprGraph;
using hopfuse::PprTiles;
using hopfuse::PreparedGraph;
using hopfuse::Status;

void make(Prepared* self, bool directed, int32_t num_types, In<int64_t> indptr, In<int32_t> indices,
          std::optional<In<float>> weight, std::optional<In<uint8_t>> edge_type, In<double> degree, In<int32_t> node_of,
          In<int32_t> internal_of, int64_t cached_nodes, int64_t strip, int64_t units) {
    const GraphArrays arrays{static_cast<int64_t>(node_of.shape(0)),
                             static_cast<int64_t>(indices.shape(0)),
                             num_types,
                             directed,
                             indptr.data(),
                             indices.data(),
                             pointer(weight),
                             pointer(edge_type),
                             degree.data(),
                             node_of.data(),
                             internal_of.data()};
    new (self) Prepared{indptr, indices, weight,      edge_type,
                        degree, node_of, internal_of, {arrays, {cached_nodes, {strip, units}}}};
}

// Read-only arrays over memory of a prepared graph, which they keep alive.
class Views {
public:
    explicit Views(nb::handle owner) : owner_(owner) {}

    template <class T>
    void add(const char* name, const T* data, int64_t rows, int64_t columns = 0) {
        if (data == nullptr) {
            made_[name] = nb::none();
            return;
        }
        const size_t shape[] = {size_t(rows), size_t(columns)};
        made_[name] = nb::ndarray<nb::numpy, const T>(data, columns > 0 ? 2 : 1, shape, owner_);
    }
    template <class T>
    void number(const char* name, T value) {
        made_[name] = value;
    }
    nb::dict made() { return std::move(made_); }

private:
    nb::handle owner_;
    nb::dict made_;
};

Layout layout_of(const std::string& name) {
    if (name == "given") return Layout::given;
    if (name == "by_length") return Layout::by_length;
    if (name == "by_window") return Layout::by_window;
    throw nb::value_error("the layout is not 'given', 'by_length' or 'by_window'");
}

const PprGraph& view(Prepared& self, const std::string& name, bool per_type, bool with_out, int32_t threads) {
    const Layout layout = layout_of(name);
    const PprGraph* found = nullptr;
    make_tables(threads, [&](const hopfuse::Execution& execution) {
        return self.graph.view(layout, per_type, with_out, execution, found);
    });
    return *found;
}

nb::dict arrays(nb::handle_t<Prepared> handle, const std::string& name, bool per_type, bool with_out, int32_t threads) {
    const PprGraph& g = view(*nb::inst_ptr<Prepared>(handle), name, per_type, with_out, threads);
    const int64_t nodes = g.num_nodes, entries = g.num_stored, columns = per_type ? g.num_types : 1;
    const int64_t two = per_type ? columns : 0;  // joint: one number a node
    Views views(handle);
    views.add("indptr", g.indptr, nodes + 1), views.add("indices", g.indices, entries);
    views.add("weight", g.weight, entries), views.add("edge_type", g.edge_type, entries);
    views.add("share32", g.share32, entries);
    views.add("degree", g.degree, nodes, g.num_types);
    views.add("node_of", g.node_of, nodes), views.add("row_of", g.row_of, nodes);
    views.add("place", g.place, nodes), views.add("internal", g.internal, nodes);
    views.add("scale64", g.scale64, nodes, two), views.add("scale32", g.scale32, nodes, two);
    views.add("unscale64", g.unscale64, nodes), views.add("unscale32", g.unscale32, nodes);
    views.add("out_indptr", g.out_indptr, nodes + 1), views.add("out_indices", g.out_indices, entries);
    views.add("out_weight", g.out_weight, entries), views.add("out_edge_type", g.out_edge_type, entries);
    views.number("volume", g.volume);
    views.number("longest_row", g.longest_row), views.number("joined_nodes", g.joined_nodes);
    return views.made();
}

nb::dict slices(nb::handle_t<Prepared> handle, bool per_type, int32_t threads) {
    const PprGraph& g = view(*nb::inst_ptr<Prepared>(handle), "by_length", per_type, false, threads);
    const hopfuse::PprSlices& s = *g.slices;
    Views views(handle);
    views.add("indptr", s.indptr, s.num_units + 1), views.add("segment", s.segment, s.segment_units);
    views.add("row_segments", s.row_segments, s.long_rows + 1);
    views.add("narrow", s.narrow, g.num_stored), views.add("wide", s.wide, g.num_stored);
    views.add("weight", s.weight, g.num_stored), views.add("edge_type", s.edge_type, g.num_stored);
    views.add("share32", s.share32, g.num_stored);
    views.number("long_rows", s.long_rows);
    return views.made();
}

std::optional<nb::dict> tiles(nb::handle_t<Prepared> handle, bool per_type, int32_t threads) {
    PreparedGraph& graph = nb::inst_ptr<Prepared>(handle)->graph;
    const PprTiles* found = nullptr;
    make_tables(threads, [&](const hopfuse::Execution& execution) { return graph.tiles(per_type, execution, found); });
    if (found == nullptr) return std::nullopt;
    const int64_t entries = graph.arrays().num_stored;
    Views views(handle);
    views.add("block_row", found->block_row, found->num_blocks + 1);
    views.add("begin", found->begin, found->num_blocks * found->num_strips + 1);
    views.add("unit", found->unit, entries), views.add("source", found->source, entries);
    views.add("weight", found->weight, entries), views.add("edge_type", found->edge_type, entries);
    views.add("share32", found->share32, entries);
    views.number("strip", found->strip), views.number("most_units", found->most_units);
    return views.made();
}

std::pair<int64_t, int64_t> counts(Prepared& self) {
    hopfuse::EntryCounts found{};
    make_tables(1, [&](const hopfuse::Execution& execution) { return self.graph.counts(execution, found); });
    return {found.longest_row, found.joined_nodes};
}

nb::dict degrees(nb::handle_t<Prepared> handle, bool per_type) {
    PreparedGraph& graph = nb::inst_ptr<Prepared>(handle)->graph;
    const hopfuse::DegreeTables* found = nullptr;
    make_tables(1, [&](const hopfuse::Execution& execution) { return graph.degrees(per_type, execution, found); });
    const int64_t nodes = graph.arrays().num_nodes, columns = per_type ? graph.arrays().num_types : 0;
    Views views(handle);
    views.add("scale64", found->scale64.data(), nodes, columns);
    views.add("scale32", found->scale32.data(), nodes, columns);
    views.add("unscale64", found->unscale64.data(), nodes), views.add("unscale32", found->unscale32.data(), nodes);
    views.number("volume", found->volume);
    return views.made();
}

nb::dict outgoing(nb::handle_t<Prepared> handle) {
    PreparedGraph& graph = nb::inst_ptr<Prepared>(handle)->graph;
    const hopfuse::StoredRows* found = nullptr;
    make_tables(1, [&](const hopfuse::Execution& execution) { return graph.outgoing(execution, found); });
    const int64_t entries = graph.arrays().num_stored;
    Views views(handle);
    views.add("out_indptr", found->indptr.data(), graph.arrays().num_nodes + 1);
    views.add("out_indices", found->indices.data(), entries);
    views.add("out_weight", found->weight.data(), entries);
    views.add("out_edge_type", found->edge_type.data(), entries);
    return views.made();
}

}  // namespace

const Binding prepared_graph_binding("prepared_graph", [](Module& m) {
    const PreparedGraph::Sizes sizes;
    nb::class_<Prepared>(m, "PreparedGraph",
                         "A graph's arrays, with the tables and layouts that walks read. Each is made once, at its "
                         "first use. Thread-safe.")
        .def("__init__", &make, nb::kw_only(), nb::arg("directed"), nb::arg("num_types"), nb::arg("indptr"),
             nb::arg("indices"), nb::arg("weight").none(), nb::arg("edge_type").none(), nb::arg("degree"),
             nb::arg("node_of"), nb::arg("internal_of"), nb::arg("cached_nodes") = sizes.cached_nodes,
             nb::arg("strip") = sizes.tile.strip, nb::arg("block_units") = sizes.tile.units)
        .def("arrays", &arrays, nb::arg("layout"), nb::kw_only(), nb::arg("per_type") = false,
             nb::arg("with_out") = false, nb::arg("threads") = 1,
             "The fields of PprGraph in a layout: given, by_length or by_window. Read-only views.")
        .def("slices", &slices, nb::kw_only(), nb::arg("per_type") = false, nb::arg("threads") = 1,
             "The fields of PprSlices. Read-only views.")
        .def("tiles", &tiles, nb::kw_only(), nb::arg("per_type") = false, nb::arg("threads") = 1,
             "The fields of PprTiles, or None if some rows have too many entries. Read-only views.")
        .def_prop_ro("counts", &counts, "The most entries into or out of a node, and the number of nodes with any.")
        .def("degrees", &degrees, nb::arg("per_type"), "The tables of PprGraph derived from degrees. Read-only views.")
        .def("outgoing", &outgoing, "The rows of outgoing edges, as in PprGraph. Read-only views.")
        .def_prop_ro(
            "nbytes", [](const Prepared& self) { return self.graph.bytes(); },
            "Bytes of the tables and layouts made so far, beside the graph's own arrays.");
    m.def("ppr_lanes", &hopfuse::ppr_lanes, nb::arg("nodes"), nb::arg("stored"), nb::arg("queries"), nb::arg("threads"),
          "The lanes of the blocks that a batch is divided into, on a graph of this size.");
});
