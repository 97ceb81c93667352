"""Batched Personalized PageRank."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, same_library
from .._validation import check_k
from ..backends import resolve
from ..backends.calls import Evidence, NodeRanking
from ..errors import InputError
from ..types import Graph, PprHits, PprResult
from ._filter import read_filter
from ._walks import EdgeTypeNorm, WalkOptions, read_walks, walk_device

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: ``ppr`` refuses to make a (B, N) score matrix above this many bytes; pass ``out=``, or use ``ppr_topk``.
SCORES_BUDGET = 1 << 32


def ppr(
    graph: Graph,
    restart: Any,
    *,
    damping: Any = 0.5,
    tol: float = 1e-6,
    max_iter: int | None = None,
    edge_type_weights: Any = None,
    edge_type_norm: EdgeTypeNorm = "joint",
    allow: Any = None,
    node_weights: Any = None,
    weighted_nodes: Any = None,
    out: NDArray[np.float32] | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> PprResult:
    """Compute the Personalized PageRank of every node for a batch of restarts.

    Solves x = d P'x + (1 - d) s for each query; mass that dangling nodes (or ``per_type`` weights that
    sum to less than 1) lose returns to s. An answer depends on the query and the graph alone: not on the
    batch, the thread count or the kernel variant. Chebyshev semi-iteration where the operator is
    symmetric (``joint`` on an undirected graph), power iteration otherwise.

    Parameters
    ----------
    graph : Graph
        N nodes, T edge types.
    restart : array_like (N,) or (B, N), scipy.sparse (B, N), Seeds, or list of {node: weight}
        Weights >= 0, normalised to sum 1 for each query; at least one above 0 in each row. From a GPU: Seeds.
    damping : float or array_like (B,)
        Probability of walking on, in [0, 1). 0.5 as in HippoRAG 2 and PolicyRAG, whose walks must stay
        near the seeds; igraph and networkx default to 0.85. Papers that call the restart probability
        alpha mean 1 - damping.
    tol : float
        Bound on the L1 error at which a query stops. Below what float32 can hold for the graph,
        ``converged`` is False after a pass limit that follows from the convergence theory.
    max_iter : int, optional
        A lower pass limit for each attempt.
    edge_type_weights : array_like (T,) or (B, T), or mapping of str to float, optional
        eta >= 0 for each edge type. ``joint``: all 1 by default. ``per_type``: 1 / T each by default. A mapping is by
        names of edge types; one that it lacks has eta = 1 under ``joint``, 0 under ``per_type``.
    edge_type_norm : {"joint", "per_type"}
        ``joint``: P = rownorm(sum_t eta_t W_t). ``per_type``: P = sum_t eta_t rownorm(W_t), sum of eta
        at most 1 (PolicyRAG).
    allow : array_like of bool (N,) or (B, N), of int ids, or a sequence of B id lists, optional
        Nodes where a query's mass may be: PPR on the induced subgraph, rows renormalised, in every bit what the graph
        without the others gives. A seed outside is an error.
    node_weights : array_like of float (B, N), or (B, M) with ``weighted_nodes``, optional
        z >= 0 of each query's nodes: a walker at u steps to v with odds w_uv z_v, P[u, v] = w_uv z_v / sum_x w_ux z_x
        (``per_type``: in each W_t). On an undirected graph an edge conducts z_u w z_v, which keeps the operator
        symmetric. z = 0 excludes the node for the query, as ``allow`` does, in every bit; a seed there is an error.
        Only ratios matter. The largest weight is that of allowed nodes with edges; weights below 2^-100 of it count as
        0, the rest is read as float32 after a power of two. On a GPU where ``restart`` is there: float32.
    weighted_nodes : array_like of int (M,), optional
        The nodes that the columns of ``node_weights`` belong to, none twice; all others have z = 1. Default: all nodes.
    out : array of float32 (B, N), optional
        C-contiguous array that receives the scores, where ``restart`` is: on the host or on a GPU.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        Of the CPU. Default: HOPFUSE_NUM_THREADS, else all processors of the process.

    Returns
    -------
    PprResult
        scores (B, N) float32, iterations, residual, bound, converged; arrays of the library that
        ``restart`` came from.

    Raises
    ------
    InputError
        Bad input, naming the row and node, or a score matrix above the memory budget (4 GiB) without ``out``.

    References
    ----------
    Personalized PageRank as used by HippoRAG 2. Chebyshev semi-iteration: Golub & Varga, 1961.

    Examples
    --------
    >>> import hopfuse as hf
    >>> g = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> r = hf.ppr(g, [{0: 1.0}, {3: 1.0}])
    >>> r.scores.round(3)
    array([[0.578, 0.311, 0.089, 0.022],
           [0.022, 0.089, 0.311, 0.578]], dtype=float32)
    >>> bool(r.converged.all())
    True

    A question's likeness to nodes 1 and 3 steers its walk; to 3 it is a tenth as likely:

    >>> star = hf.Graph.from_edges([0, 0], [1, 3], num_nodes=4)
    >>> hf.ppr(star, [{0: 1.0}], node_weights=[[1.0, 0.1]], weighted_nodes=[1, 3]).scores.round(3)
    array([[0.667, 0.303, 0.   , 0.03 ]], dtype=float32)
    """
    options = WalkOptions(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    device = walk_device(backend, restart)
    if device is not None:
        with device.runtime.on_stream_of(restart.nodes):
            queries = read_walks(graph, restart, options, device=device)
            on_device = _device_matrix(device, len(restart), graph.num_nodes, out)
            evidence = device.ppr(graph, queries, on_device)
            return _ppr_result(on_device, evidence, lambda array: device.runtime.export(array, restart.nodes))
    engine = resolve(backend)
    queries = read_walks(graph, restart, options)
    scores = _score_matrix(queries.damping.size, graph.num_nodes, out)
    return _ppr_result(scores, engine.ppr(graph, queries, scores), same_library(restart))


def _ppr_result(scores: Any, evidence: Evidence, wrap: Callable[[Any], Any]) -> PprResult:
    iterations, residual, bound, converged = evidence
    return PprResult(wrap(scores), wrap(iterations), wrap(residual), wrap(bound), wrap(converged.view(np.bool_)))


def ppr_topk(
    graph: Graph,
    restart: Any,
    k: int,
    *,
    candidates: Any = None,
    stop: Literal["proven", "tol"] = "proven",
    prove: Literal["order", "set"] = "order",
    empty: Literal["error", "skip"] = "error",
    damping: Any = 0.5,
    tol: float = 1e-6,
    max_iter: int | None = None,
    edge_type_weights: Any = None,
    edge_type_norm: EdgeTypeNorm = "joint",
    allow: Any = None,
    node_weights: Any = None,
    weighted_nodes: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> PprHits:
    """Return the k nodes with the highest Personalized PageRank, without a (B, N) matrix.

    Nodes with score 0 are no hits. Order: higher score, then lower id.

    Parameters
    ----------
    graph, restart, damping, tol, max_iter, edge_type_weights, edge_type_norm, allow
        As in :func:`ppr`.
    node_weights, weighted_nodes, backend, threads
        As in :func:`ppr`.
    k : int
        At least 0. Results are min(k, N) wide, or as wide as there are ``candidates`` where all queries share them.
    candidates : array_like of bool (N,) or (B, N), of int ids, or a sequence of B id lists, optional
        Only these nodes can be hits (passages, say); they are ranked, the walk uses all nodes. Where they are given for
        each query, each distinct set of them is a walk of its own.
    stop : {"proven", "tol"}
        "proven" stops a query as soon as the set and the order of its hits are proven to be those of the
        exact scores. What is not runs to ``tol`` and then, where a bound per node holds (an undirected graph
        under ``joint``, no restart at a node without edges) and ``max_iter`` allows, through bounds that look
        around a node and one step of iterative refinement (Wilkinson 1963), which take about half as long again
        where a list needs both. Nodes with the same edges tie
        exactly and are proven to; other ties stay unproven. The ids of a smaller k are a prefix of those of a
        larger one; the scores of a query stopped early differ from the exact ones by at most
        ``score_bounds``. :func:`capture` needs "tol".
    prove : {"order", "set"}
        What ``proven`` says, and what stops a query: "order" the set of the hits and their order, "set" the set alone,
        which takes fewer passes. With "set" hits are listed by the scores that are returned, so the list of a smaller k
        is a subset of a larger one's, not a prefix.
    empty : {"error", "skip"}
        A query without a seed: an error that names it, or an empty list (proven, 0 iterations).

    Returns
    -------
    PprHits
        ids, scores, counts, score_bounds, proven, iterations, residual, bound, converged.

    Examples
    --------
    >>> import hopfuse as hf
    >>> g = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> h = hf.ppr_topk(g, [{0: 1.0}], 2, candidates=[1, 2, 3])
    >>> h.ids, h.proven
    (array([[1, 2]]), array([ True]))
    """
    k = check_k(k)
    if stop not in ("proven", "tol"):
        raise InputError(f"stop is {stop!r}; allowed: 'proven', 'tol'")
    if prove not in ("order", "set"):
        raise InputError(f"prove is {prove!r}; allowed: 'order', 'set'")
    if empty not in ("error", "skip"):
        raise InputError(f"empty is {empty!r}; allowed: 'error', 'skip'")
    options = WalkOptions(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    skips = empty == "skip"
    device = walk_device(backend, restart)
    if device is not None:
        if device.runtime.fixed and stop != "tol":
            raise InputError("ppr_topk inside capture needs stop='tol': nothing is read back that could stop a walk")
        rankings = _read_candidates(graph, candidates, len(restart))
        if len(rankings) != 1 or rankings[0].queries is not None:
            raise InputError(
                "candidates are given for each query, which needs restart on the host; give them once for all"
            )
        with device.runtime.on_stream_of(restart.nodes):
            queries = read_walks(graph, restart, options, skips=skips, device=device)
            width, ranked = _width(k, graph, rankings), rankings[0].candidates
            ranking = NodeRanking(width, ranked, stop == "proven", prove == "order")
            hits, evidence = device.ppr_topk(graph, queries, ranking)
            return _ppr_hits({**hits, **evidence._asdict()}, lambda array: device.runtime.export(array, restart.nodes))
    engine = resolve(backend)
    queries = read_walks(graph, restart, options, skips=skips)
    batch, parts = queries.damping.size, []
    walks = queries.indptr[1:] > queries.indptr[:-1]
    rankings = _read_candidates(graph, candidates, batch)
    k = _width(k, graph, rankings)
    for ranked, rows in rankings:
        at = np.flatnonzero(walks) if rows is None else rows[walks[rows]]
        hits, evidence = engine.ppr_topk(
            graph, queries.take(at), NodeRanking(k, ranked, stop == "proven", prove == "order")
        )
        parts.append((at, {**hits, **evidence._asdict()}))
    whole = len(parts) == 1 and parts[0][0].size == batch
    arrays = parts[0][1] if whole else _joined(parts, batch, k)
    return _ppr_hits(arrays, same_library(restart))


def _ppr_hits(arrays: dict[str, Any], wrap: Callable[[Any], Any]) -> PprHits:
    for flags in ("proven", "converged"):
        arrays[flags] = arrays[flags].view(np.bool_)
    wrapped = PprHits.unchecked(**{name: wrap(array) for name, array in arrays.items()})
    assert isinstance(wrapped, PprHits)
    return wrapped


def _joined(parts: list[tuple[NDArray[np.int64], dict[str, Any]]], batch: int, k: int) -> dict[str, Any]:
    """Return the results of some queries each, in their places; a query in no part has no hits, and that is proven."""
    joined: dict[str, Any] = {
        "ids": np.full((batch, k), -1, np.int64),
        "scores": np.full((batch, k), -np.inf, np.float32),
        "counts": np.zeros(batch, np.int64),
        "score_bounds": np.zeros((batch, k), np.float32),
        "proven": np.ones(batch, np.uint8),
        **Evidence.empty(batch)._asdict(),
    }
    for rows, arrays in parts:
        for name, array in arrays.items():
            joined[name][rows] = array
    return joined


class _Ranking(NamedTuple):
    """Candidates, as internal nodes (None: all), and the queries that rank them (None: all)."""

    candidates: NDArray[np.int32] | None
    queries: NDArray[np.int64] | None


def _read_candidates(graph: Graph, candidates: Any, batch: int) -> list[_Ranking]:
    """Return the distinct sets of candidates: one where all queries have the same, none for no query."""
    if candidates is None:
        return [_Ranking(None, None)]
    chosen = read_filter(candidates, batch, graph.num_nodes, "candidates")
    if chosen.shared:
        ids = chosen.ids if chosen.mask is None else np.flatnonzero(chosen.mask)
        return [_Ranking(np.ascontiguousarray(graph.internal_of[ids], np.int32), None)]
    masks = chosen.masks(graph.num_nodes)
    groups: dict[bytes, list[int]] = {}
    for query, packed in enumerate(np.packbits(masks, axis=1)):
        groups.setdefault(packed.tobytes(), []).append(query)
    return [
        _Ranking(np.ascontiguousarray(graph.internal_of[np.flatnonzero(masks[rows[0]])], np.int32), np.array(rows))
        for rows in groups.values()
    ]


def _width(k: int, graph: Graph, rankings: list[_Ranking]) -> int:
    """Return how many hits there can be: no more than candidates, where all queries share them, or nodes."""
    shared = rankings[0].candidates if rankings and rankings[0].queries is None else None
    return min(k, graph.num_nodes if shared is None else shared.size)


def _device_matrix(device: DeviceOps, batch: int, n: int, out: Any) -> Any:
    if out is None:
        _check_budget(batch, n)
        return device.runtime.empty((batch, n), np.float32)
    if not is_on_device(out):
        raise InputError(f"out is a {type(out).__name__} on the host, and restart is on a device; both must be there")
    array = device.runtime.adopt(out)
    if array.dtype != np.float32 or tuple(array.shape) != (batch, n):
        raise InputError(f"out is {array.dtype}{tuple(array.shape)}; it must be float32 of shape ({batch}, {n})")
    return array


def _check_budget(batch: int, n: int) -> None:
    if 4 * batch * n > SCORES_BUDGET:
        raise InputError(
            f"scores of {batch} queries x {n} nodes take {4 * batch * n / 2**30:.1f} GiB, above the budget of "
            f"{SCORES_BUDGET >> 30} GiB; score fewer queries at a time, use ppr_topk, or pass out="
        )


def _score_matrix(batch: int, n: int, out: NDArray[np.float32] | None) -> NDArray[np.float32]:
    if out is None:
        _check_budget(batch, n)
        return np.empty((batch, n), np.float32)
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != (batch, n):
        given = f"{out.dtype}{out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"out is {given}; it must be a float32 ndarray of shape ({batch}, {n})")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise InputError("out must be C-contiguous and writeable")
    return out
