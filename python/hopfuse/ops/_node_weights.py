"""Convert the node weights of walks to the form that backends take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_float64, to_numpy
from .._validation import check_real
from ..backends.node_weights import NodeWeightCall, NodeWeights, order_weights
from ..backends.restarts import Restart
from ..errors import InputError
from ..types import Graph

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def read_node_weights(
    graph: Graph, node_weights: Any, weighted_nodes: Any, rows: Restart, allow: NDArray[np.uint8] | None
) -> NodeWeights | None:
    """Return the node weights of a batch, by internal node; None if there are none.

    Parameters
    ----------
    node_weights : float array (B, N), or (B, M) with ``weighted_nodes``
    weighted_nodes : int array (M,), optional
    rows : Restart
        The batch's restarts; no seed may have weight 0.
    allow : array of uint8 (B, N) or (1, N), optional
        By internal node.
    """
    if node_weights is None:
        if weighted_nodes is not None:
            raise InputError(
                "unused",
                "weighted_nodes",
                "{field} are given without node_weights, whose columns they number; pass both",
            )
        return None
    nodes = _read_nodes(graph, weighted_nodes)
    weights = to_numpy(node_weights, "node_weights")
    check_real(weights, "node_weights")
    if weights.shape != (rows.batch, nodes.size):
        columns = "node" if weighted_nodes is None else "entry of weighted_nodes"
        raise InputError(
            "shape",
            "node_weights",
            "{field} has shape {shape}; it must be ({batch}, {size}): one row per query, one column per {columns}",
            shape=weights.shape,
            batch=rows.batch,
            size=nodes.size,
            columns=columns,
        )
    weights = weights if weights.dtype == np.float32 else to_float64(weights)
    return order_weights(graph, np.ascontiguousarray(weights), nodes, rows, allow)


def device_node_weights(
    device: DeviceOps,
    graph: Graph,
    node_weights: Any,
    weighted_nodes: Any,
    batch: int,
    *,
    per_type: bool,
    allow: NDArray[np.uint8] | None,
    lightest: NDArray[np.float64] | None,
) -> NodeWeights:
    """Return the node weights of a batch on a device; the kernels check their values."""
    nodes, weights = _read_nodes(graph, weighted_nodes), device.runtime.adopt(node_weights)
    if weights.dtype != np.float32 or tuple(weights.shape) != (batch, nodes.size):
        raise InputError(
            "shape",
            "node_weights",
            "{field} are {dtype}{shape}; on a device they must be float32 of shape ({batch}, {size}): "
            "convert them there",
            dtype=weights.dtype,
            shape=tuple(weights.shape),
            batch=batch,
            size=nodes.size,
        )
    return device.order_weights(NodeWeightCall(graph, weights, nodes, per_type, allow, lightest))


def _read_nodes(graph: Graph, given: Any) -> NDArray[np.int32]:
    """Return the internal node number of each column; the graph keeps those of the last call for the next."""
    if given is None:
        return graph.internal_of
    nodes = to_numpy(given, "weighted_nodes")
    if nodes.ndim != 1 or (nodes.dtype.kind not in "iu" and nodes.size):
        raise InputError(
            "shape",
            "weighted_nodes",
            "{field} is {dtype}{shape}; it must be whole numbers of shape (M,)",
            dtype=nodes.dtype,
            shape=nodes.shape,
        )
    kept = graph.derived.get("weighted_nodes")
    if kept is not None and np.array_equal(kept[0], nodes):
        found: NDArray[np.int32] = kept[1]
        return found
    n = graph.num_nodes
    if nodes.size and not (nodes.min() >= 0 and nodes.max() < n):
        raise InputError(
            "UNSORTED",
            "weighted_nodes",
            "{field} has id {nodes}; ids are 0 .. {n}",
            nodes=nodes[(nodes < 0) | (nodes >= n)][0],
            n=n - 1,
        )
    nodes = nodes.astype(np.int64, copy=False)
    seen = np.zeros(n, np.bool_)
    seen[nodes] = True
    if np.count_nonzero(seen) != nodes.size:
        ids, counts = np.unique(nodes, return_counts=True)
        raise InputError(
            "duplicate",
            "weighted_nodes",
            "{field} has id {ids} more than once; give each node one column",
            ids=ids[counts > 1][0],
        )
    internal = np.ascontiguousarray(graph.internal_of[nodes], np.int32)
    internal.flags.writeable = False
    graph.derived["weighted_nodes"] = nodes.copy(), internal
    return internal
