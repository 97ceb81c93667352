"""Restart vectors in every accepted form, checked, as rows of (internal node, value)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_float64, to_numpy
from .._validation import check_real
from ..errors import InputError
from ..types import Graph, Seeds
from ..types.hits import PAD_ID


class Restart(NamedTuple):
    """CSR rows by internal node, ascending; every value > 0 and finite."""

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]

    @property
    def batch(self) -> int:
        return self.indptr.size - 1


def read_restart(graph: Graph, restart: Any, may_be_empty: bool = False) -> Restart:
    """Rows from (N,) or (B, N) numbers, a scipy.sparse (B, N), Seeds, or a list of {node: weight}."""
    if isinstance(restart, Mapping):
        restart = [restart]
    if isinstance(restart, Seeds):
        batch, row, node, value = _from_seeds(graph, restart)
    elif hasattr(restart, "tocsr"):
        batch, row, node, value = _from_sparse(graph, restart)
    elif isinstance(restart, Sequence) and (not restart or all(isinstance(r, Mapping) for r in restart)):
        batch, row, node, value = _from_mappings(graph, restart)
    else:
        batch, row, node, value = _from_dense(graph, to_numpy(restart, "restart"))
    _check_values(row, node, value)
    keep = value > 0
    row, internal, value = row[keep], graph.internal_of[node[keep]], value[keep]
    position = row * graph.num_nodes + internal
    if (position[1:] <= position[:-1]).any():
        order = np.argsort(position, kind="stable")
        internal, value = internal[order], value[order]
    counts = np.bincount(row, minlength=batch)
    empty = np.flatnonzero(counts == 0)
    if empty.size and not may_be_empty:
        raise InputError(
            f"restart row {empty[0]} is all zero; a query needs at least one seed with weight > 0 "
            "(leave such a query out of the batch; ppr_topk has empty='skip')"
        )
    indptr = np.zeros(batch + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    value = np.ascontiguousarray(value)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(np.append(value, 0.0), indptr[:-1]) if batch else np.zeros(0)
    if not np.isfinite(sums).all():
        raise InputError(f"restart row {int(np.flatnonzero(~np.isfinite(sums))[0])} sums beyond float64; scale it down")
    return Restart(indptr, np.ascontiguousarray(internal, np.int32), value)


Entries = tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _from_dense(graph: Graph, array: NDArray[Any]) -> Entries:
    check_real(array, "restart")
    rows = np.atleast_2d(array)
    if rows.ndim != 2 or rows.shape[1] != graph.num_nodes:
        raise InputError(
            f"restart has shape {array.shape}; it must be ({graph.num_nodes},) or (B, {graph.num_nodes}), "
            "a scipy.sparse matrix of that shape, or a list of {node: weight}"
        )
    row, node = np.nonzero(rows)  # NaN counts as nonzero, so the checks see it
    return rows.shape[0], row, node, to_float64(rows[row, node])


def _from_sparse(graph: Graph, matrix: Any) -> Entries:
    if len(matrix.shape) != 2 or matrix.shape[1] != graph.num_nodes:
        raise InputError(f"restart has shape {matrix.shape}; it must be (B, {graph.num_nodes})")
    coo = matrix.tocoo()
    if coo is matrix:
        coo = coo.copy()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        coo.sum_duplicates()
    check_real(coo.data, "restart")
    return int(matrix.shape[0]), coo.row.astype(np.int64), coo.col.astype(np.int64), to_float64(coo.data)


def _from_seeds(graph: Graph, seeds: Seeds) -> Entries:
    row, at = np.nonzero(seeds.nodes != PAD_ID)
    node = seeds.nodes[row, at]
    outside = np.flatnonzero(node >= graph.num_nodes)
    if outside.size:
        raise InputError(
            f"restart row {row[outside[0]]} has seed {node[outside[0]]}, which is outside the graph "
            f"(ids are 0 .. {graph.num_nodes - 1})"
        )
    return len(seeds), row, node, seeds.weights[row, at]


def _from_mappings(graph: Graph, rows: Sequence[Mapping[Any, Any]]) -> Entries:
    row = np.repeat(np.arange(len(rows), dtype=np.int64), [len(r) for r in rows])
    keys = [key for r in rows for key in r]
    for b, r in enumerate(rows):
        for key in r:
            if isinstance(key, bool) or not isinstance(key, int | np.integer):
                raise InputError(f"restart row {b} has the seed {key!r}; seeds are node ids, whole numbers")
            if not 0 <= key < graph.num_nodes:
                raise InputError(
                    f"restart row {b} has seed {key}, which is outside the graph (ids are 0 .. {graph.num_nodes - 1})"
                )
    try:
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused below
            value = np.array([v for r in rows for v in r.values()], np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"restart weights must be numbers: {error}") from error
    return len(rows), row, np.array(keys, np.int64), value


def _check_values(row: NDArray[np.int64], node: NDArray[np.int64], value: NDArray[np.float64]) -> None:
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"restart row {row[at]} has weight {value[at]} at node {node[at]}; weights are finite and at least 0"
        )
