"""Node weights in the form that every backend's walks read; see NODE WEIGHTS in kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..types import Graph
from .faults import no_node_weight
from .restarts import Restart

LEAST_NODE_WEIGHT = _native.PPR_LEAST_WEIGHT
"""The smallest weight above 0, after scaling."""


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


class NodeWeightCall(NamedTuple):
    """Scale a caller's weights, on a device, to the range that walks read."""

    graph: Graph
    weight: Any  # (B, M) float32
    node: NDArray[np.int32]  # (M,) distinct internal nodes
    per_type: bool
    allow: NDArray[np.uint8] | None  # (B, N) or (1, N) by internal node, on the host
    lightest: NDArray[np.float64] | None  # (B,) lightest edge that a query can walk; None: no product underflows


def columns_of(node: NDArray[np.int32], num_nodes: int) -> NDArray[np.int32]:
    """Return the column of each internal node, (N,), or -1 for nodes without one."""
    column = np.full(num_nodes, -1, np.int32)
    column[node] = np.arange(node.size, dtype=np.int32)
    return column


class _Columns(NamedTuple):
    """The column of each internal node, and whether it has one."""

    of: NDArray[np.int32]  # -1 for none
    is_weighted: NDArray[np.uint8]


def _columns_in(graph: Graph, node: NDArray[np.int32]) -> _Columns:
    """Return the columns of the nodes of a graph, which keeps the last result for nodes that cannot change."""
    kept = graph.derived.get("columns")
    if kept is not None and kept[0] is node:
        found: _Columns = kept[1]
        return found
    column = columns_of(node, graph.num_nodes)
    columns = _Columns(column, (column >= 0).view(np.uint8))
    if not node.flags.writeable:
        graph.derived["columns"] = node, columns
    return columns


def order_weights(
    graph: Graph,
    given: NDArray[np.float32] | NDArray[np.float64],
    node: NDArray[np.int32],
    rows: Restart,
    allow: NDArray[np.uint8] | None,
) -> NodeWeights:
    """Scale weights (B, M) of internal nodes to the range that walks read.

    Raises
    ------
    InputError
        A weight that is not finite or below 0, a row without a weight above 0, or a seed with weight 0; the message
        names the row and the column or node.
    """
    batch = given.shape[0]
    made = NodeWeights(np.empty(given.shape, np.float32), node, np.empty(batch, np.float32))
    columns = _columns_in(graph, node)
    is_single = given.dtype == np.float32
    wrong = _native.read_node_weights(
        given.view(np.float32) if is_single else None,
        None if is_single else given.view(np.float64),
        node,
        columns.is_weighted,
        _has_entries(graph),
        allow,
        made.weight,
        made.other,
    )
    if wrong is None:
        _check_seeds(graph, made, columns.of, rows)
        return made
    fault, row, at = wrong
    if fault == _native.NODE_WEIGHT_ALL_ZERO:
        raise no_node_weight(row)
    raise InputError(
        "range",
        f"node_weights[{row}, {at}]",
        "{field} is {given}; weights must be finite and at least 0",
        given=float(given[row, at]),
    )


def _check_seeds(graph: Graph, weights: NodeWeights, column: NDArray[np.int32], rows: Restart) -> None:
    """Raise if a seed has weight 0; ``column`` is that of each internal node, or -1."""
    row, own = np.repeat(np.arange(rows.batch), np.diff(rows.indptr)), column[rows.node]
    weight = weights.other[row]
    given = own >= 0
    weight[given] = weights.weight[row[given], own[given]]
    if weight.all():
        return
    at = int(np.argmin(weight))
    raise InputError(
        "conflict",
        f"restart[{row[at]}]",
        "{field} has the seed {node}, whose weight in {@node_weights} is 0 (one below 2^-100 of the largest counts as "
        "0); drop the seed or raise the weight",
        node=int(graph.node_of[rows.node[at]]),
    )


def _has_entries(graph: Graph) -> NDArray[np.uint8]:
    """Return whether each internal node has entries, into or out of it."""
    if "has_entries" not in graph.derived:
        has = np.diff(graph.indptr) > 0
        if graph.directed:
            has[graph.indices] = True
        graph.derived["has_entries"] = has.view(np.uint8)
    found: NDArray[np.uint8] = graph.derived["has_entries"]
    return found
