"""Nodes that can be hits of a graph's walks, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.filters import read_filter
from .._validation import check_type
from ..errors import InputError
from .graph import Graph


class CandidateTable(NamedTuple):
    """What a local walk needs to know of candidates; arrays are read-only."""

    nodes: NDArray[np.int32] | None
    """(M,) internal nodes, or None for all."""
    bits: NDArray[np.uint64] | None
    """(N // 64 + 1,) bit v % 64 of word v // 64 says whether internal node v is one; None for all."""
    with_edges: int
    """The number of candidates with edges."""
    largest_degree: NDArray[np.float64]
    """(T,) their largest degree by type."""
    largest_total: float
    """Their largest degree over all types."""


def candidate_table(graph: Graph, nodes: NDArray[np.int32] | None) -> CandidateTable:
    """Return the table of distinct internal nodes, which are not checked, or of all."""
    length = np.diff(graph.indptr)
    if nodes is None:
        return CandidateTable(None, None, int(np.count_nonzero(length)), *_largest(graph.degree))
    mask = np.zeros((graph.num_nodes // 64 + 1) * 64, np.bool_)
    mask[nodes] = True
    bits = np.packbits(mask, bitorder="little").view(np.dtype("<u8")).astype(np.uint64, copy=False)
    bits.flags.writeable = False
    return CandidateTable(nodes, bits, int(np.count_nonzero(length[nodes])), *_largest(graph.degree[nodes]))


class Candidates:
    """The nodes of a graph that can be hits of :func:`hopfuse.ppr_topk`, such as its passages. Immutable.

    A call that is given ids or a mask checks them and looks for their largest degree, which takes longer than a local
    walk on a large graph. These are checked once. Pickled together with their graph, they still belong to it.

    Parameters
    ----------
    graph : Graph
        The graph of N nodes that they belong to.
    nodes : array_like of int (M,), or of bool (N,)
        The caller's ids, or a mask.

    Raises
    ------
    InputError
        Ids outside the graph; a mask of another length; a filter per query.

    Examples
    --------
    >>> import hopfuse as hf
    >>> graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> passages = hf.Candidates(graph, [2, 3])
    >>> passages
    Candidates(2 of 4 nodes)
    >>> hf.ppr_topk(graph, [{0: 1.0}], 1, candidates=passages).ids
    array([[2]])
    """

    __slots__ = ("_graph", "_table")

    def __init__(self, graph: Graph, nodes: Any) -> None:
        check_type(graph, "graph", Graph, "a Graph, as Graph.from_edges and Graph.from_scipy build it")
        chosen = read_filter(nodes, 1, graph.num_nodes, "nodes")
        if chosen.per_query:
            raise InputError("shape", "nodes", "{field} are one set, ids (M,) or a mask (N,), not a set per query")
        ids = chosen.ids[0] if chosen.masks is None else np.flatnonzero(chosen.masks[0])
        internal = np.array(graph.internal_of[ids], np.int32)
        internal.flags.writeable = False
        self._graph, self._table = graph, candidate_table(graph, internal)

    @property
    def graph(self) -> Graph:
        """The graph that they belong to."""
        return self._graph

    @property
    def table(self) -> CandidateTable:
        """The candidates as walks read them."""
        return self._table

    def __len__(self) -> int:
        nodes = self._table.nodes
        return self._graph.num_nodes if nodes is None else nodes.size

    def __repr__(self) -> str:
        return f"Candidates({len(self)} of {self._graph.num_nodes} nodes)"


def _largest(degree: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the largest degree by type, and that over all types."""
    by_type = degree.max(axis=0, initial=0.0)
    by_type.flags.writeable = False
    return by_type, float(sum(degree.T, np.zeros(len(degree))).max(initial=0.0))
