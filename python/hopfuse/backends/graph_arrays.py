"""Arrays that the PPR kernels of every backend derive from a graph, once per edge-type normalisation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._arrays.rows import indptr_of
from ..types import Graph

Arrays = dict[str, NDArray[Any] | None]


class Degrees(NamedTuple):
    """The arrays derived from ``degree``; see PprGraph in kernels/include/hopfuse/ppr.h."""

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
    """Return degrees over all types, summed in type order as in the kernels."""
    total = np.zeros(degree.shape[0], np.float64)
    for t in range(degree.shape[1]):
        total = total + degree[:, t]
    return total


def _volume(degree: NDArray[np.float64]) -> float:
    """Return the sum of all degrees, rounded to its grain and so independent of the order: see hopfuse/ppr_sum.h."""
    terms = np.count_nonzero(degree)
    if not terms:
        return 0.0
    anchor = _native.ppr_volume_anchor(float(degree.max()), float(terms))
    return float(np.sum((degree + anchor) - anchor))


def _inverse(degree: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)


def out_rows(graph: Graph) -> Arrays:
    """Return rows of outgoing edges with ascending targets, for the masked degrees of a directed graph."""
    row = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), np.diff(graph.indptr))
    order = np.argsort(graph.indices, kind="stable")
    return {
        "out_indptr": indptr_of(graph.indices, graph.num_nodes),
        "out_indices": np.ascontiguousarray(row[order]),
        "out_weight": None if graph.weight is None else np.ascontiguousarray(graph.weight[order]),
        "out_edge_type": None if graph.edge_type is None else np.ascontiguousarray(graph.edge_type[order]),
    }


def entry_counts(graph: Graph) -> tuple[int, int]:
    """Return the most entries into or out of a node, and the number of nodes with any."""
    most = np.diff(graph.indptr)
    if graph.directed:
        most = np.maximum(most, np.bincount(graph.indices, minlength=graph.num_nodes))
    return int(most.max(initial=0)), int(np.count_nonzero(most))
