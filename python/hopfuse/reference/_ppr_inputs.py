"""Check the arguments of PPR and broadcast them to the queries of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    if edge_type_norm not in EDGE_TYPE_NORMS:
        raise InputError(
            "choice",
            "edge_type_norm",
            "{field} is {given!r}; allowed: {allowed}",
            given=edge_type_norm,
            allowed=", ".join(EDGE_TYPE_NORMS),
        )
    s = _restart(restart, graph.num_nodes)
    batch = s.shape[0]
    d = _damping(damping, batch)
    eta = _type_weights(edge_type_weights, edge_type_norm, batch, graph.num_edge_types)
    allowed = node_mask(allow, "allow", batch, graph.num_nodes)
    outside = (s > 0) & ~allowed
    if outside.any():
        row, node = np.argwhere(outside)[0]
        raise InputError(
            "UNSORTED",
            "restart",
            "{field} row {row} has weight on node {node}, which allow excludes; drop the seed",
            row=row,
            node=node,
        )
    z = _node_weights(graph, node_weights, weighted_nodes, allowed)
    absent = (s > 0) & (z == 0)
    if absent.any():
        row, node = np.argwhere(absent)[0]
        raise InputError(
            "UNSORTED",
            "restart",
            "{field} row {row} has weight on node {node}, whose node weight is 0; drop the seed",
            row=row,
            node=node,
        )
    return Inputs(s, d, eta, allowed, z)


def _restart(restart: Any, n: int) -> NDArray[np.float64]:
    weights = _restart_weights(restart, n)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row, node = np.argwhere(bad)[0]
        raise InputError(
            "range",
            "restart",
            "{field} row {row}, node {node} is {weights}; it must be finite and at least 0",
            row=row,
            node=node,
            weights=weights[row, node],
        )
    with np.errstate(over="ignore"):
        total = weights.sum(axis=1, keepdims=True)
    bad_rows = np.flatnonzero(~((total > 0) & np.isfinite(total)))
    if bad_rows.size:
        raise InputError(
            "range",
            "restart",
            "{field} row {bad_rows} sums to {total}; give it at least one seed",
            bad_rows=bad_rows[0],
            total=total[bad_rows[0], 0],
        )
    return np.asarray(weights / total)


def _restart_weights(restart: Any, n: int) -> NDArray[np.float64]:
    if isinstance(restart, (list, tuple)) and all(isinstance(row, Mapping) for row in restart):
        return _from_mappings(restart, n)
    if hasattr(restart, "tocsr"):
        entries = restart.tocsr().tocoo()
        _check_shape(entries.shape, n)
        dense = np.zeros(entries.shape, np.float64)
        np.add.at(dense, (entries.row, entries.col), entries.data)
        return dense
    array = np.asarray(restart)
    if array.dtype.kind not in "fiub":
        raise InputError("dtype", "restart", "{field} has dtype {dtype}; it must be real numbers", dtype=array.dtype)
    array = np.atleast_2d(array.astype(np.float64))
    _check_shape(array.shape, n)
    return array


def _from_mappings(rows: Any, n: int) -> NDArray[np.float64]:
    dense = np.zeros((len(rows), n), np.float64)
    for b, row in enumerate(rows):
        for node, weight in row.items():
            if not isinstance(node, (int, np.integer)) or not 0 <= node < n:
                raise InputError(
                    "unknown",
                    "restart",
                    "{field} row {b} has node {node!r}; nodes are 0 .. {n}",
                    b=b,
                    node=node,
                    n=n - 1,
                )
            dense[b, node] = weight
    return dense


def _check_shape(shape: tuple[int, ...], n: int) -> None:
    if len(shape) != 2 or shape[1] != n:
        raise InputError(
            "shape",
            "restart",
            "{field} has shape {shape}; it must be ({n},) or (B, {n}) for a graph of {n} nodes",
            shape=shape,
            n=n,
        )


def _damping(damping: Any, batch: int) -> NDArray[np.float64]:
    d = np.asarray(damping, np.float64)
    if d.shape not in ((), (batch,)):
        raise InputError(
            "shape",
            "damping",
            "{field} has shape {shape}; it must be one number, or {batch}, one per query",
            shape=d.shape,
            batch=batch,
        )
    if not ((d >= 0) & (d < 1)).all():
        raise InputError("range", "damping", "{field} is {damping}; it must be in [0, 1)", damping=damping)
    return np.broadcast_to(d, (batch,))


def _type_weights(weights: Any, norm: str, batch: int, types: int) -> NDArray[np.float64]:
    if weights is None:
        return np.full((batch, types), 1.0 if norm == "joint" else 1.0 / types)
    eta = np.asarray(weights, np.float64)
    if eta.shape not in ((types,), (batch, types)):
        raise InputError(
            "shape",
            "edge_type_weights",
            "{field} has shape {shape}; it must be ({types},) or ({batch}, {types})",
            shape=eta.shape,
            types=types,
            batch=batch,
        )
    if not (np.isfinite(eta) & (eta >= 0)).all():
        raise InputError(
            "range", "edge_type_weights", "{field} is {weights}; weights must be finite and at least 0", weights=weights
        )
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
    if weights.shape != (batch, ids.size):
        raise InputError(
            "shape",
            "node_weights",
            "{field} has shape {shape}; it must be ({batch}, {size})",
            shape=weights.shape,
            batch=batch,
            size=ids.size,
        )
    weights = weights.astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            "range",
            "node_weights",
            "{field} row {row}, column {column} is {weights}; it must be finite and at least 0",
            row=row,
            column=column,
            weights=weights[row, column],
        )
    if ids.size and not (weights > 0).any(axis=1).all():
        raise InputError(
            "zero",
            "node_weights",
            "{field} row {flatnonzero} is all zero",
            flatnonzero=np.flatnonzero(~(weights > 0).any(axis=1))[0],
        )
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
            "edge_type_weights",
            "{field} sum to {total} in row {over}; with edge_type_norm='per_type' they may sum to at "
            "most 1 (the rest returns to the seeds)",
            total=total[over[0], 0],
            over=over[0],
        )
    return np.asarray(eta / np.maximum(total, 1.0))
