"""Float64 oracle of ppr and ppr_topk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_k, check_shape
from ..types import Graph
from ._ppr_inputs import Inputs, ppr_inputs
from .ranking import best, node_mask

__all__ = ["ppr", "ppr_residual", "ppr_topk"]

NEGLIGIBLE = 1e-17


class Transitions(NamedTuple):
    """The matrix P by its entries: a walker at src[e] steps to dst[e] with probability prob[e]."""

    num_nodes: int
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    prob: NDArray[np.float64]

    def step(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Pᵀx."""
        return _totals(self.dst, self.prob * x[self.src], self.num_nodes)

    def lost(self, x: NDArray[np.float64]) -> float:
        """Return the mass of x that one step loses, at dangling nodes and in rows of P that sum to less than 1."""
        kept = _totals(self.src, self.prob, self.num_nodes)
        return float(np.sum(x * (1.0 - kept)))


def ppr(
    graph: Graph,
    restart: Any,
    *,
    damping: Any = 0.5,
    edge_type_weights: Any = None,
    edge_type_norm: str = "joint",
    allow: Any = None,
    node_weights: Any = None,
    weighted_nodes: Any = None,
) -> NDArray[np.float64]:
    """Compute the Personalized PageRank of a batch of restart vectors.

    It is the fixed point of x = d Pᵀx + (1 - d + d m) s, where m is the mass of x that P loses, which returns to s. P
    loses mass at nodes without outgoing edges, and in rows that sum to less than 1. Equivalently, it is the solution of
    y = d Pᵀy + (1 - d) s, divided by its sum. As a series of non-negative terms, y = (1 - d) (s + d Pᵀs + d² PᵀPᵀs +
    ...); it is summed until the rest is below 1e-17 of the sum, which takes about 39/(1 - d) passes.

    Parameters
    ----------
    graph : Graph
        N nodes, T edge types.
    restart : array_like (N,) or (B, N), scipy.sparse (B, N), or list of B {node: weight}
        Weights >= 0; each row is divided by its sum to give s.
    damping : float or array_like (B,)
        d in [0, 1): the probability of continuing the walk. The restart probability of papers is 1 - d.
    edge_type_weights : array_like (T,) or (B, T), optional
        eta >= 0. Default: 1 each with "joint", 1/T each with "per_type".
    edge_type_norm : {"joint", "per_type"}
        "joint": P = rownorm(sum_t eta_t W_t). "per_type" (PolicyRAG): P = sum_t eta_t rownorm(W_t),
        where eta sums to at most 1 (a sum up to 1 + 1e-6 is taken for rounding and divided out).
    allow : bool (N,) or (B, N), ids (m,), or a sequence of B id arrays, optional
        Nodes that may hold mass: the result equals that on the induced subgraph, and is 0 elsewhere.
    node_weights : array_like (B, N), or (B, M) with ``weighted_nodes``, optional
        z >= 0 per query and node: w_uv is replaced by w_uv z_v before rows are normalised ("per_type": in each W_t).
        z = 0 excludes the node. Only ratios matter. A query's weights are divided by the smallest power of two that is
        at least the largest weight of its allowed nodes with edges; weights below 2^-100 times that largest count as 0;
        the others are rounded to float32.
    weighted_nodes : int array_like (M,), optional
        The nodes of the columns of ``node_weights``; all others have z = 1.

    Returns
    -------
    ndarray of float64, shape (B, N)
        x, by the caller's node ids; each row sums to 1. With d = 0 it is s.

    Raises
    ------
    InputError
        A restart row that sums to 0; a seed outside the graph, excluded by `allow` or with z = 0; a row of node weights
        that are all 0. Weights that are negative or not finite; damping outside [0, 1); wrong shapes.

    References
    ----------
    HippoRAG 2 (PPR over a knowledge graph with weighted seeds); PolicyRAG (edge-type policies).

    Examples
    --------
    A walk on the path 0 - 1 - 2 that starts at node 0:

    >>> import hopfuse as hf
    >>> from hopfuse.reference import ppr
    >>> g = hf.Graph.from_edges([0, 1], [1, 2])
    >>> ppr(g, [{0: 1.0}]).round(6)
    array([[0.583333, 0.333333, 0.083333]])
    """
    inputs = ppr_inputs(graph, restart, damping, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes)
    x = np.zeros_like(inputs.restart)
    for b in range(x.shape[0]):
        p = _transitions(graph, inputs, b, edge_type_norm)
        x[b] = _solve(p, inputs.restart[b], float(inputs.damping[b]))
    return x


def ppr_residual(
    graph: Graph,
    x: Any,
    restart: Any,
    *,
    damping: Any = 0.5,
    edge_type_weights: Any = None,
    edge_type_norm: str = "joint",
    allow: Any = None,
    node_weights: Any = None,
    weighted_nodes: Any = None,
) -> NDArray[np.float64]:
    """Return the L1 norm of r = d Pᵀx + (1 - d + d m) s - x, with m the mass of x that P loses.

    The L1 distance to the exact solution is at most this norm divided by 1 - d. Options are as for :func:`ppr`.

    Parameters
    ----------
    x : array_like of float, shape (B, N)
        Approximate scores, by the caller's node ids.

    Returns
    -------
    ndarray of float64, shape (B,)

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.reference import ppr_residual
    >>> g = hf.Graph.from_edges([0, 1], [1, 2])
    >>> ppr_residual(g, [[1.0, 0.0, 0.0]], [{0: 1.0}])
    array([1.])
    """
    inputs = ppr_inputs(graph, restart, damping, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes)
    given: NDArray[np.float64] = np.atleast_2d(np.asarray(x, np.float64))
    check_shape(given.shape, "x", inputs.restart.shape, reason="one row per restart")
    norms = np.zeros(given.shape[0])
    for b in range(norms.size):
        p = _transitions(graph, inputs, b, edge_type_norm)
        s, d = inputs.restart[b], float(inputs.damping[b])
        r = d * p.step(given[b]) + (1 - d + d * p.lost(given[b])) * s - given[b]
        norms[b] = np.abs(r).sum()
    return norms


def ppr_topk(
    graph: Graph, restart: Any, k: int, *, candidates: Any = None, **options: Any
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """Return the k best nodes of each query with a score above 0: higher score first, then lower id.

    Parameters
    ----------
    k : int
        At least 0; a query with fewer such nodes has a shorter list.
    candidates : ids (m,), bool (N,), bool (B, N), or a sequence of B id arrays, optional
        Nodes that may be returned. Unlike `allow`, it does not change the walk.
    **options
        As in :func:`ppr`.

    Returns
    -------
    ids : list of B ndarrays of int64
    scores : list of B ndarrays of float64

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.reference import ppr_topk
    >>> g = hf.Graph.from_edges([0, 1, 1], [1, 2, 3])
    >>> ids, scores = ppr_topk(g, [{0: 1.0}], 3)
    >>> ids[0]
    array([0, 1, 2])
    """
    size = check_k(k)
    x = ppr(graph, restart, **options)
    keep = node_mask(candidates, "candidates", x.shape[0], x.shape[1]) & (x > 0)
    rows = [best(np.flatnonzero(mask), row[mask], size) for row, mask in zip(x, keep, strict=True)]
    return [ids for ids, _ in rows], [scores for _, scores in rows]


def _transitions(graph: Graph, inputs: Inputs, query: int, norm: str) -> Transitions:
    eta, z = inputs.type_weights[query], inputs.node_weights[query]
    allowed = inputs.allowed[query] & (z > 0)
    src, dst, weight, edge_type = _entries(graph)
    weight = np.where(allowed[src] & allowed[dst], weight * z[dst], 0.0)
    if norm == "joint":
        prob = _row_normalised(src, weight * (eta / max(eta.max(), np.finfo(float).tiny))[edge_type], graph.num_nodes)
    else:
        prob = np.zeros_like(weight)
        for t in range(graph.num_edge_types):
            of_type = edge_type == t
            prob[of_type] = eta[t] * _row_normalised(src[of_type], weight[of_type], graph.num_nodes)
    return Transitions(graph.num_nodes, src, dst, prob)


def _entries(graph: Graph) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.uint8]]:
    """Return (src, dst, weight, type) of all directed edges, in the caller's ids."""
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    weight = np.ones(row.size) if graph.weight is None else graph.weight.astype(np.float64)
    edge_type = np.zeros(row.size, np.uint8) if graph.edge_type is None else graph.edge_type
    return graph.node_of[graph.indices], graph.node_of[row], weight, edge_type


def _row_normalised(src: NDArray[np.int32], weight: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Divide each weight by the sum over its source; 0 if that sum is 0."""
    degree = _totals(src, weight, n)[src]
    return np.divide(weight, degree, out=np.zeros_like(weight), where=degree > 0)


def _totals(node: NDArray[np.int32], weight: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(node, weights=weight, minlength=n), np.float64)


def _solve(p: Transitions, s: NDArray[np.float64], d: float) -> NDArray[np.float64]:
    if d == 0:
        return s
    term = (1 - d) * s
    y, mass = term.copy(), float(term.sum())
    left = mass
    while d * left > (1 - d) * NEGLIGIBLE * mass:  # each term has at most d times the mass of the previous one
        term = d * p.step(term)
        left = float(term.sum())
        y += term
        mass += left
    return np.asarray(y / y.sum())
