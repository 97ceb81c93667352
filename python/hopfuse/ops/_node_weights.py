"""Convert the node weights of walks to the form that backends take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_float64, to_numpy
from .._validation import check_dtype, check_ids, check_needs, check_real, check_shape
from ..backends.node_weights import NodeWeightCall, NodeWeights, order_weights
from ..backends.restarts import Restart
from ..errors import InputError
from ..types import Graph
from ._lists import check_device_dtype

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
    check_needs("weighted_nodes", weighted_nodes, "node_weights", node_weights, "whose columns they number")
    if node_weights is None:
        return None
    nodes = _read_nodes(graph, weighted_nodes)
    weights = to_numpy(node_weights, "node_weights")
    check_real(weights, "node_weights")
    columns = "node" if weighted_nodes is None else "entry of weighted_nodes"
    shape = rows.batch, nodes.size
    check_shape(weights.shape, "node_weights", shape, reason=f"one row per query, one column per {columns}")
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
    check_device_dtype(weights, "node_weights")
    check_shape(weights.shape, "node_weights", (batch, nodes.size))
    return device.order_weights(NodeWeightCall(graph, weights, nodes, per_type, allow, lightest))


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


def _read_nodes(graph: Graph, given: Any) -> NDArray[np.int32]:
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
