"""Node weights in the form that every backend's walks read; see NODE WEIGHTS in kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_dtype, check_ids, check_shape
from ..errors import InputError
from ..types import Graph


class NodeWeights(NamedTuple):
    """Weights of some nodes for each query of a batch, and one weight for all other nodes of the query.

    ``weight`` and ``other`` are on the host or, if ``on_device``, on the device of the backend.
    """

    weight: Any
    """(B, M) float32, 0, or from 2^-101 to 1."""
    node: NDArray[np.int32]
    """(M,) distinct internal nodes."""
    other: Any
    """(B,) float32, the weight of all other nodes."""
    on_device: bool = False

    def take(self, rows: NDArray[np.int64]) -> NodeWeights:
        """Return the weights of a subset of the queries."""
        return self._replace(weight=self.weight[rows], other=self.other[rows])

    def exclude(self, queries: slice) -> bool:
        """Return whether any of these queries may exclude a node by weight 0; always True on a device."""
        return self.on_device or not (self.weight[queries].all() and self.other[queries].all())

    def effect(self, graph: Graph) -> WeightEffect:
        """Return what the weights mean, on the host."""
        has_edges = np.diff(graph.indptr) > 0
        own = has_edges[self.node]
        has_others = np.count_nonzero(own) < np.count_nonzero(has_edges)
        weight = self.weight if own.all() else self.weight[:, own]
        excludes = (weight == 0).any(axis=1) | ((self.other == 0) & has_others)
        return WeightEffect(excludes, (weight != 1).any(axis=1) | ((self.other != 1) & has_others))

    def least(self, query: int) -> float:
        """Return the smallest weight above 0 of a query, at most 1."""
        own = self.weight[query]
        other = float(self.other[query])
        return min(float(own.min(initial=1.0, where=own > 0)), other if other > 0 else 1.0)


class WeightEffect(NamedTuple):
    """What node weights mean for each query's nodes with edges; those of other nodes change nothing. Each (B,) bool."""

    excludes: NDArray[np.bool_]
    """One of these weights is 0."""
    guides: NDArray[np.bool_]
    """One of them is not 1."""

    @classmethod
    def none(cls, batch: int) -> WeightEffect:
        """Return that of a batch without node weights."""
        return cls(np.zeros(batch, np.bool_), np.zeros(batch, np.bool_))


# ---- The nodes of columns --------------------------------------------------------------------------------------------


def nodes_of_range(graph: Graph, given: Any) -> NDArray[np.int32] | None:
    """Return the internal numbers of an ascending range of nodes, which the graph keeps; None for anything else."""
    if not isinstance(given, range):
        return None
    kept = graph.derived.get("nodes_of_range")
    if kept is None or kept[0] != given:
        if given.step < 1 or given.start < 0 or given.stop > graph.num_nodes:
            return None
        internal = np.ascontiguousarray(graph.internal_of[given.start : given.stop : given.step], np.int32)
        internal.flags.writeable = False
        kept = graph.derived["nodes_of_range"] = given, internal
    found: NDArray[np.int32] = kept[1]
    return found


def read_nodes(graph: Graph, given: Any) -> NDArray[np.int32]:
    """Return the internal node number of each column; the graph keeps those of the last call for the next."""
    if given is None:
        return graph.internal_of
    ranged = nodes_of_range(graph, given)
    if ranged is not None:
        return ranged
    nodes = to_numpy(given, "weighted_nodes")
    check_dtype(nodes, "weighted_nodes", "iu", "node ids")
    check_shape(nodes.shape, "weighted_nodes", ("M",))
    kept = graph.derived.get("weighted_nodes")
    if kept is not None and np.array_equal(kept[0], nodes):
        found: NDArray[np.int32] = kept[1]
        return found
    n = graph.num_nodes
    check_ids(nodes, "weighted_nodes", n)
    nodes = nodes.astype(np.int64, copy=False)
    seen = np.zeros(n, np.bool_)
    seen[nodes] = True
    if np.count_nonzero(seen) != nodes.size:
        ids, counts = np.unique(nodes, return_counts=True)
        raise InputError(
            "duplicate",
            "weighted_nodes",
            "{field} has the id {given} more than once; give each node one column",
            given=int(ids[counts > 1][0]),
        )
    internal = np.ascontiguousarray(graph.internal_of[nodes], np.int32)
    internal.flags.writeable = False
    graph.derived["weighted_nodes"] = nodes.copy(), internal
    return internal


class Columns(NamedTuple):
    """The column of each internal node, and whether it has one."""

    of: NDArray[np.int32]  # -1 for none
    is_weighted: NDArray[np.uint8]


def columns_in(graph: Graph, node: NDArray[np.int32]) -> Columns:
    """Return the columns of the nodes of a graph, which keeps the last result for nodes that cannot change."""
    kept = graph.derived.get("columns")
    if kept is not None and kept[0] is node:
        found: Columns = kept[1]
        return found
    column = np.full(graph.num_nodes, -1, np.int32)
    column[node] = np.arange(node.size, dtype=np.int32)
    columns = Columns(column, (column >= 0).view(np.uint8))
    if not node.flags.writeable:
        graph.derived["columns"] = node, columns
    return columns
