"""Nodes that can be hits of a graph's walks, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.filters import read_filter
from .._validation import check_type
from ..errors import InputError
from .graph import Graph


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The nodes of a graph that can be hits of :func:`hopfuse.ppr_topk`, such as its passages. Immutable.

    A call that is given ids or a mask checks them and looks for their largest degree, which takes longer than a local
    walk on a large graph. These are checked once.

    Attributes
    ----------
    graph : Graph
        The graph of N nodes and T edge types that they belong to.
    nodes : ndarray of int32, shape (M,), or None
        Internal nodes, ascending by the caller's ids; None: all nodes.
    bits : ndarray of uint64, shape (N // 64 + 1,), or None
        Bit v % 64 of word v // 64 says whether internal node v is one of them.
    largest_degree : ndarray of float64, shape (T,)
        Their largest degree by type.
    largest_total : float
        Their largest degree over all types.

    Examples
    --------
    >>> import hopfuse as hf
    >>> graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> passages = hf.Candidates.from_nodes(graph, [2, 3])
    >>> hf.ppr_topk(graph, [{0: 1.0}], 1, candidates=passages).ids
    array([[2]])
    """

    graph: Graph
    nodes: NDArray[np.int32] | None
    bits: NDArray[np.uint64] | None
    largest_degree: NDArray[np.float64]
    largest_total: float

    @classmethod
    def from_nodes(cls, graph: Graph, nodes: Any) -> Candidates:
        """Check nodes of a graph.

        Parameters
        ----------
        nodes : array_like of int (M,), or of bool (N,)
            The caller's ids, or a mask.

        Raises
        ------
        InputError
            Ids outside the graph; a mask of another length; a filter per query.
        """
        check_type(graph, "graph", Graph, "a Graph, as Graph.from_edges and Graph.from_scipy build it")
        chosen = read_filter(nodes, 1, graph.num_nodes, "nodes")
        if chosen.per_query:
            raise InputError("shape", "nodes", "{field} are one set, ids (M,) or a mask (N,), not a set per query")
        ids = chosen.ids[0] if chosen.masks is None else np.flatnonzero(chosen.masks[0])
        return cls.of_internal(graph, np.ascontiguousarray(graph.internal_of[ids], np.int32))

    @classmethod
    def of_internal(cls, graph: Graph, nodes: NDArray[np.int32]) -> Candidates:
        """Return the candidates of distinct internal nodes, which are not checked."""
        mask = np.zeros((graph.num_nodes // 64 + 1) * 64, np.bool_)
        mask[nodes] = True
        bits = np.packbits(mask, bitorder="little").view(np.dtype("<u8")).astype(np.uint64, copy=False)
        return cls(graph, nodes, bits, *_largest(graph.degree[nodes]))

    @classmethod
    def all_of(cls, graph: Graph) -> Candidates:
        """Return all nodes as candidates."""
        return cls(graph, None, None, *_largest(graph.degree))

    @property
    def count(self) -> int:
        """The number of candidates, M."""
        return self.graph.num_nodes if self.nodes is None else self.nodes.size

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"Candidates({self.count} of {self.graph.num_nodes} nodes)"


def _largest(degree: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the largest degree by type, and that over all types."""
    return degree.max(axis=0, initial=0.0), float(sum(degree.T, np.zeros(len(degree))).max(initial=0.0))
