"""The arrays of a graph that every backend's PPR kernels read, derived once for each meaning of edge types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph

Arrays = dict[str, NDArray[Any] | None]


class Degrees(NamedTuple):
    """kernels/include/hopfuse/ppr.h, PprGraph: what is derived from ``degree``."""

    scale64: NDArray[np.float64]
    scale32: NDArray[np.float32]
    unscale64: NDArray[np.float64] | None
    unscale32: NDArray[np.float32] | None
    volume: float

    @classmethod
    def of(cls, graph: Graph, per_type: bool) -> Degrees:
        degree = graph.degree if per_type else _sum_types(graph.degree)
        scale64 = _inverse(degree)
        if per_type:
            return cls(scale64, scale64.astype(np.float32), None, None, 0.0)
        unscale64 = np.where(degree > 0, degree, 1.0)
        scale32 = np.where(degree > 0, scale64, 1.0).astype(np.float32)
        return cls(scale64, scale32, unscale64, unscale64.astype(np.float32), _volume(degree))


def _sum_types(degree: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return degrees over all types, added in type order as the kernels do."""
    total = np.zeros(degree.shape[0], np.float64)
    for t in range(degree.shape[1]):
        total = total + degree[:, t]
    return total


def _volume(degree: NDArray[np.float64]) -> float:
    """Return the sum of all degrees by its grain, which is the same for every order: hopfuse/ppr_sum.h."""
    terms = np.count_nonzero(degree)
    if not terms:
        return 0.0
    anchor = _native.ppr_volume_anchor(float(degree.max()), float(terms))
    return float(np.sum((degree + anchor) - anchor))


def _inverse(degree: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)


def out_rows(graph: Graph) -> Arrays:
    """Return rows of outgoing edges, targets ascending: masked degrees of a directed graph need them."""
    row = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), np.diff(graph.indptr))
    order = np.argsort(graph.indices, kind="stable")
    indptr = np.zeros(graph.num_nodes + 1, np.int64)
    np.cumsum(np.bincount(graph.indices, minlength=graph.num_nodes), out=indptr[1:])
    return {
        "out_indptr": indptr,
        "out_indices": np.ascontiguousarray(row[order]),
        "out_weight": None if graph.weight is None else np.ascontiguousarray(graph.weight[order]),
        "out_edge_type": None if graph.edge_type is None else np.ascontiguousarray(graph.edge_type[order]),
    }


def entry_counts(graph: Graph) -> tuple[int, int]:
    """Return the most entries in a row or out of a node, and how many nodes have any."""
    most = np.diff(graph.indptr)
    if graph.directed:
        most = np.maximum(most, np.bincount(graph.indices, minlength=graph.num_nodes))
    return int(most.max(initial=0)), int(np.count_nonzero(most))
