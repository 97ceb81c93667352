"""Graphs prepared for walks: tables and layouts of the native module, each made once per graph."""

from __future__ import annotations

from .. import _native
from ..types import Graph


def prepared_graph(graph: Graph) -> _native.PreparedGraph:
    """Return the prepared form of a graph, which the graph keeps."""
    found: _native.PreparedGraph | None = graph.derived.get("prepared")
    if found is None:  # if another thread is faster, its form is kept
        found = graph.derived.setdefault("prepared", prepare(graph))
    return found


def prepare(graph: Graph, **sizes: int) -> _native.PreparedGraph:
    """Return a prepared form of a graph, in which tests may change ``sizes`` of tiles; nothing is computed yet."""
    return _native.PreparedGraph(
        directed=graph.directed,
        num_types=graph.num_edge_types,
        indptr=graph.indptr,
        indices=graph.indices,
        weight=graph.weight,
        edge_type=graph.edge_type,
        degree=graph.degree,
        node_of=graph.node_of,
        internal_of=graph.internal_of,
        **sizes,
    )
