"""Graphs as the CPU's kernels read them: in their own order, and for few queries at once with rows stored by length."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph
from .arguments import PprQueries
from .graph_arrays import Arrays, Degrees, longest_row, out_rows

MANY_LANES = 32
"""Queries that walk together where there are enough."""


class Layout(NamedTuple):
    """An order in which rows are stored: in every window of nodes the longest first.

    So rows of one length stand side by side, and a row is still near its neighbours in the internal order.
    """

    place: NDArray[np.int32]
    """(N,) where each internal node's row is stored."""
    internal: NDArray[np.int32]
    """(N,) the internal node of each stored row."""

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        node = np.arange(graph.num_nodes)
        internal = np.lexsort((node, -np.diff(graph.indptr), node // _native.PPR_WINDOW)).astype(np.int32)
        place = np.empty_like(internal)
        place[internal] = np.arange(internal.size, dtype=np.int32)
        return cls(place, internal)

    def nodes(self, tables: Arrays) -> Arrays:
        """Tables by internal node, by stored row."""
        return {
            name: None if table is None else np.ascontiguousarray(table[self.internal])
            for name, table in tables.items()
        }

    def rows(self, arrays: Arrays) -> Arrays:
        """Rows (indptr, indices, then what each entry has) in this order; the entries of a row keep theirs."""
        (indptr_name, indptr), (indices_name, indices), *more = arrays.items()
        assert indptr is not None
        assert indices is not None
        length = np.diff(indptr)[self.internal]
        stored = np.zeros_like(indptr)
        np.cumsum(length, out=stored[1:])
        entry = np.arange(indices.size) + np.repeat(indptr[self.internal] - stored[:-1], length)
        return {
            indptr_name: stored,
            indices_name: self.place[indices[entry]],
            **{name: None if array is None else array[entry] for name, array in more},
        }


def graph_view(graph: Graph, queries: PprQueries) -> _native.GraphView:
    """The kernels' view of a graph: made once per meaning of edge types, once with out-rows, once for few queries."""
    with_rows = queries.allowed is not None and graph.directed
    is_few = 0 < queries.damping.size % MANY_LANES <= _native.PPR_FEW_LANES
    key = f"cpu:{'per_type' if queries.per_type else 'joint'}{':out' if with_rows else ''}"
    if key not in graph._prepared:
        graph._prepared[key] = _make_view(graph, queries.per_type, with_rows, None, None)
    if is_few and f"{key}:few" not in graph._prepared:
        if "cpu:layout" not in graph._prepared:
            graph._prepared["cpu:layout"] = Layout.of(graph)
        by_length = _make_view(graph, queries.per_type, with_rows, graph._prepared["cpu:layout"], None)
        graph._prepared[f"{key}:few"] = _make_view(graph, queries.per_type, with_rows, None, by_length)
    view: _native.GraphView = graph._prepared[f"{key}:few" if is_few else key]
    return view


def _make_view(
    graph: Graph, per_type: bool, with_rows: bool, layout: Layout | None, by_length: _native.GraphView | None
) -> _native.GraphView:
    derived = Degrees.of(graph, per_type)
    rows: Arrays = {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "weight": graph.weight,
        "edge_type": graph.edge_type,
    }
    outgoing: Arrays = out_rows(graph) if with_rows else {f"out_{name}": None for name in rows}
    nodes: Arrays = {
        "degree": graph.degree,
        "node_of": graph.node_of,
        "scale64": derived.scale64,
        "scale32": derived.scale32,
        "unscale64": derived.unscale64,
        "unscale32": derived.unscale32,
    }
    arrays: dict[str, Any] = {**rows, **outgoing, **nodes, "row_of": graph.internal_of, "place": None, "internal": None}
    if layout is not None:
        arrays |= layout.rows(rows) | layout.nodes(nodes) | layout._asdict()
        arrays["row_of"] = layout.place[graph.internal_of]
        if with_rows:
            arrays |= layout.rows(outgoing)
    return _native.GraphView.make(
        owner=(arrays, by_length),
        directed=graph.directed,
        num_types=graph.num_edge_types,
        volume=derived.volume,
        longest_row=longest_row(graph),
        by_length=by_length,
        **arrays,
    )
