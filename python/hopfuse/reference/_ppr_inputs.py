"""Check the arguments of PPR and broadcast them to the queries of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_real, check_shape, check_weights, is_whole, wrong_value
from ..errors import InputError
from ..types import Graph
from .ranking import node_mask

EDGE_TYPE_NORMS = ("joint", "per_type")
SUM_SLACK = 1e-6
#: Node weights below 2^-NODE_WEIGHT_RANGE of a query's largest count as 0.
NODE_WEIGHT_RANGE = 100


class Inputs(NamedTuple):
    """The checked inputs, one row per query."""

    restart: NDArray[np.float64]
    damping: NDArray[np.float64]
    type_weights: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    node_weights: NDArray[np.float64]


def ppr_inputs(
    graph: Graph,
    restart: Any,
    damping: Any,
    edge_type_weights: Any,
    edge_type_norm: str,
    allow: Any,
    node_weights: Any,
    weighted_nodes: Any,
) -> Inputs:
    """Check every argument, also against the graph and the other arguments."""
    check_choice(edge_type_norm, "edge_type_norm", EDGE_TYPE_NORMS)
    s = _restart(restart, graph.num_nodes)
    batch = s.shape[0]
    d = _damping(damping, batch)
    eta = _type_weights(edge_type_weights, edge_type_norm, batch, graph.num_edge_types)
    allowed = node_mask(allow, "allow", batch, graph.num_nodes)
    z = _node_weights(graph, node_weights, weighted_nodes, allowed)
    for other, excluded in (("allow", ~allowed), ("node_weights", z == 0)):
        if ((s > 0) & excluded).any():
            row, node = map(int, np.argwhere((s > 0) & excluded)[0])
            raise InputError(
                "conflict",
                f"restart[{row}]",
                "{field} has weight on node {node}, which {other:@} excludes; drop the seed",
                node=node,
                other=other,
            )
    return Inputs(s, d, eta, allowed, z)


def _restart(restart: Any, n: int) -> NDArray[np.float64]:
    weights = _restart_weights(restart, n)
    check_weights(weights, "restart")
    with np.errstate(over="ignore"):
        total = weights.sum(axis=1, keepdims=True)
    bad_rows = np.flatnonzero(~((total > 0) & np.isfinite(total)))
    if bad_rows.size:
        raise InputError(
            "zero",
            f"restart[{bad_rows[0]}]",
            "{field} sums to {given}; give it at least one seed",
            given=float(total[bad_rows[0], 0]),
        )
    return np.asarray(weights / total)


def _restart_weights(restart: Any, n: int) -> NDArray[np.float64]:
    if isinstance(restart, (list, tuple)) and all(isinstance(row, Mapping) for row in restart):
        return _from_mappings(restart, n)
    if hasattr(restart, "tocsr"):
        entries = restart.tocsr().tocoo()
        check_shape(entries.shape, "restart", ("B", n))
        dense = np.zeros(entries.shape, np.float64)
        np.add.at(dense, (entries.row, entries.col), entries.data)
        return dense
    array = np.asarray(restart)
    check_real(array, "restart")
    array = np.atleast_2d(array.astype(np.float64))
    check_shape(array.shape, "restart", ("B", n))
    return array


def _from_mappings(rows: Any, n: int) -> NDArray[np.float64]:
    dense = np.zeros((len(rows), n), np.float64)
    for b, row in enumerate(rows):
        for node, weight in row.items():
            if not is_whole(node) or not 0 <= node < n:
                raise InputError(
                    "unknown",
                    f"restart[{b}]",
                    "{field} has the node {given!r}; nodes are {allowed}",
                    given=node,
                    allowed=f"0 .. {n - 1}",
                )
            dense[b, node] = weight
    return dense


def _damping(damping: Any, batch: int) -> NDArray[np.float64]:
    d = np.asarray(damping, np.float64)
    check_shape(d.shape, "damping", (), (batch,))
    if not ((d >= 0) & (d < 1)).all():
        raise wrong_value(d.tolist(), "damping", "in [0, 1)")
    return np.broadcast_to(d, (batch,))


def _type_weights(weights: Any, norm: str, batch: int, types: int) -> NDArray[np.float64]:
    if weights is None:
        return np.full((batch, types), 1.0 if norm == "joint" else 1.0 / types)
    eta = np.asarray(weights, np.float64)
    check_shape(eta.shape, "edge_type_weights", (types,), (batch, types))
    check_weights(eta, "edge_type_weights")
    eta = np.broadcast_to(eta, (batch, types))
    return eta if norm == "joint" else _at_most_one(eta)


def _node_weights(graph: Graph, given: Any, nodes: Any, allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return (B, N) weights scaled by a power of two, 0 if below 2^-100 of the largest, rounded to float32."""
    batch, n = allowed.shape
    z = np.ones((batch, n))
    if given is None:
        return z
    ids = np.arange(n) if nodes is None else np.asarray(nodes, np.int64)
    weights = np.asarray(given)
    check_shape(weights.shape, "node_weights", (batch, ids.size))
    weights = weights.astype(np.float64)
    check_weights(weights, "node_weights")
    if ids.size and not (weights > 0).any(axis=1).all():
        raise InputError("zero", f"node_weights[{np.flatnonzero(~weights.any(axis=1))[0]}]", "{field} is all zero")
    z[:, ids] = weights
    counted = np.where(allowed & _has_edges(graph), z, 0.0)
    largest = np.where(counted.any(axis=1), counted.max(axis=1, initial=0.0), z.max(axis=1, initial=0.0))
    part, exponent = np.frexp(largest)
    exponent = np.where(part == 0.5, exponent - 1, exponent)[:, None]
    scaled = np.ldexp(z, -exponent)
    scaled[scaled < np.ldexp(np.ldexp(largest[:, None], -exponent), -NODE_WEIGHT_RANGE)] = 0.0
    rounded = np.minimum(scaled, 1.0).astype(np.float32)
    return np.asarray(rounded, np.float64)


def _has_edges(graph: Graph) -> NDArray[np.bool_]:
    """Return whether each of the caller's nodes has an incoming or outgoing edge."""
    has = np.diff(graph.indptr) > 0
    has[graph.indices] = True
    return np.asarray(has[graph.internal_of])


def _at_most_one(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows that sum to at most 1; a sum that exceeds 1 only by rounding is divided out."""
    total = eta.sum(axis=1, keepdims=True)
    over = np.flatnonzero(total > 1 + SUM_SLACK)
    if over.size:
        raise InputError(
            "range",
            f"edge_type_weights[{over[0]}]",
            "{field} sums to {given}; with edge_type_norm='per_type' the weights may sum to {allowed} (the rest "
            "returns to the seeds)",
            given=float(total[over[0], 0]),
            allowed="at most 1",
        )
    return np.asarray(eta / np.maximum(total, 1.0))
