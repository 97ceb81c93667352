"""Graphs as the CPU's kernels read them: in their own order, and for few queries at once with rows stored by length."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph
from .calls import PprQueries
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
        """Return tables by internal node as tables by stored row."""
        return {
            name: None if table is None else np.ascontiguousarray(table[self.internal])
            for name, table in tables.items()
        }

    def rows(self, arrays: Arrays) -> Arrays:
        """Put rows (indptr, indices, then what each entry has) in this order; the entries of a row keep theirs."""
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


def lane_blocks(batch: int) -> list[int]:
    """Return the lanes of the blocks in which ppr_f32.cpp solves a batch."""
    lanes = [MANY_LANES] * (batch // MANY_LANES)
    left = batch % MANY_LANES
    if left > MANY_LANES // 2:
        lanes.append(MANY_LANES // 2)
        left -= MANY_LANES // 2
    if left:
        lanes.append(next(width for width in (1, 4, 8, MANY_LANES // 2) if width >= left))
    return lanes


def threads_used(graph: Graph, queries: PprQueries) -> int:
    """Return the most threads that a block of the batch is worth, of those that it may use."""
    sizes = graph.num_nodes, graph.num_stored
    blocks = lane_blocks(queries.damping.size)
    return max((_native.ppr_threads(*sizes, lanes, queries.threads) for lanes in blocks), default=1)


def graph_view(graph: Graph, queries: PprQueries, *, regroups: bool = False) -> _native.GraphView:
    """The kernels' view of a graph: made once per meaning of edge types (with out-rows or without), and once with the
    rows by length too, for batches that have a block of few lanes or may come to one (``regroups``).
    """
    with_rows = queries.allow is not None and graph.directed
    is_few = regroups or min(lane_blocks(queries.damping.size)) <= _native.PPR_FEW_LANES
    key = f"cpu:{'per_type' if queries.per_type else 'joint'}{':out' if with_rows else ''}"
    if key not in graph.derived:
        derived = Degrees.of(graph, queries.per_type)
        arrays = _arrays(graph, derived, with_rows)
        graph.derived[key] = arrays, derived.volume, _make_view(graph, arrays, derived.volume, None)
    arrays, volume, view = graph.derived[key]
    if is_few:
        if f"{key}:few" not in graph.derived:
            by_length = _make_view(graph, _laid_out(graph, arrays), volume, None)
            graph.derived[f"{key}:few"] = _make_view(graph, arrays, volume, by_length)
        view = graph.derived[f"{key}:few"]
    made: _native.GraphView = view
    return made


ROWS = ("indptr", "indices", "weight", "edge_type", "share32")
OUT_ROWS = ("out_indptr", "out_indices", "out_weight", "out_edge_type")
NODES = ("degree", "node_of", "scale64", "scale32", "unscale64", "unscale32")


def _arrays(graph: Graph, derived: Degrees, with_rows: bool) -> Arrays:
    """Return what the kernels read, by internal node."""
    return {
        **{name: getattr(graph, name) for name in (*ROWS[:-1], "degree", "node_of")},
        "share32": _shares(graph, derived) if derived.unscale64 is None else None,
        **{name: getattr(derived, name) for name in NODES[2:]},
        **(out_rows(graph) if with_rows else dict.fromkeys(OUT_ROWS)),
        "row_of": graph.internal_of,
        "place": None,
        "internal": None,
    }


def _shares(graph: Graph, derived: Degrees) -> NDArray[np.float32]:
    """Return 1 / degree of each entry's source, of the entry's type: read in order, not here and there."""
    types = graph.num_edge_types
    source = graph.indices.astype(np.int64) * types
    return derived.scale32.reshape(-1)[source if graph.edge_type is None else source + graph.edge_type]


def _laid_out(graph: Graph, arrays: Arrays) -> Arrays:
    """Return the same by stored row, rows by length."""
    layout = Layout.of(graph)
    laid = layout.rows({name: arrays[name] for name in ROWS}) | layout.nodes({name: arrays[name] for name in NODES})
    outgoing = {name: arrays[name] for name in OUT_ROWS}
    laid |= outgoing if outgoing["out_indptr"] is None else layout.rows(outgoing)
    return laid | layout._asdict() | {"row_of": layout.place[graph.internal_of]}


def _make_view(
    graph: Graph, arrays: dict[str, Any], volume: float, by_length: _native.GraphView | None
) -> _native.GraphView:
    return _native.GraphView.make(
        owner=(arrays, by_length),
        directed=graph.directed,
        num_types=graph.num_edge_types,
        volume=volume,
        longest_row=longest_row(graph),
        by_length=by_length,
        **arrays,
    )
