"""Batched Personalized PageRank."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device
from .._validation import check_bytes, check_choice, check_k
from ..backends.calls.ppr import PprCall, PprTopkCall
from ..backends.engine import ONLY_SEEDS, engine_for
from ..backends.node_weights import nodes_of_range
from ..backends.walk_queries import Evidence, NodeRanking
from ..errors import InputError
from ..types import Candidates, Graph, LocalWalks, PprHits, PprResult
from ._arguments import read_filter
from ._walks import EdgeTypeNorm, WalkOptions

#: The largest score matrix that ``ppr`` allocates, in bytes.
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

    Solves x = d Pᵀx + (1 - d) s for each query. Mass lost at dangling nodes, or because ``per_type`` weights sum to
    less than 1, returns to s. Results depend only on the query and the graph, not on the batch, the thread count or the
    kernel variant. The solver is Chebyshev semi-iteration if the operator is symmetric (``joint`` on an undirected
    graph), and power iteration otherwise.

    Parameters
    ----------
    graph : Graph
        N nodes, T edge types.
    restart : array_like (N,) or (B, N), scipy.sparse (B, N), Seeds, or list of {node: weight}
        Weights >= 0, normalised to sum 1 per query; each row needs at least one above 0. On a GPU: Seeds only.
    damping : float or array_like (B,)
        Probability of continuing the walk, in [0, 1). The default 0.5 follows HippoRAG 2 and PolicyRAG, whose walks
        stay near the seeds; igraph and NetworkX default to 0.85. Papers that call the restart probability alpha mean
        ``1 - damping``.
    tol : float
        A query stops when the bound of its L1 error is at most this. If float32 cannot prove it on the graph,
        ``converged`` is False after a pass limit derived from the convergence theory. The actual error may well be
        smaller: the bound assumes roundings that all add up, 1 / (1 - damping) times their sum. It is largest where
        most of the mass passes through a hub: around a node with 1,000 neighbours and a damping of 0.85, the bound is
        about 2e-6 and the error 2e-7.
    max_iter : int, optional
        A lower pass limit for each attempt.
    edge_type_weights : array_like (T,) or (B, T), or mapping of str to float, optional
        eta >= 0 per edge type. Default: 1 each for ``joint``, 1 / T each for ``per_type``. A mapping is keyed by edge
        type names; a type that it lacks has eta = 1 for ``joint`` and 0 for ``per_type``.
    edge_type_norm : {"joint", "per_type"}
        ``joint``: P = rownorm(sum_t eta_t W_t). ``per_type``: P = sum_t eta_t rownorm(W_t), with a sum of eta of at
        most 1 (PolicyRAG).
    allow : array_like of bool (N,) or (B, N), of int (M,) or (B, M), or B id lists, optional
        Nodes that may hold a query's mass: PPR on the induced subgraph with renormalised rows, the same bits as on a
        graph without the other nodes. A seed outside is an error.
    node_weights : array_like of float (B, N), or (B, M) with ``weighted_nodes``, optional
        z >= 0 per query and node: a walker at u steps to v with P[u, v] = w_uv z_v / sum_x w_ux z_x (``per_type``: in
        each W_t). On an undirected graph an edge has weight z_u w_uv z_v, which keeps the operator symmetric. z = 0
        excludes the node for the query, exactly as ``allow`` does; a seed there is an error. Only ratios matter.
        Weights below 2^-100 of the largest, taken over allowed nodes with edges, count as 0; the others are scaled by a
        power of two and rounded to float32. If ``restart`` is on a GPU, an array there must be float32.
    weighted_nodes : array_like of int (M,), optional
        The distinct nodes of the columns of ``node_weights``; all other nodes have z = 1. Default: all nodes. A
        ``range`` is read once for all calls on the graph.
    out : array of float32 (B, N), optional
        C-contiguous array for the scores, on the host or GPU like ``restart``. Undefined after a call that raised.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    PprResult
        scores (B, N) float32, iterations, residual, bound, converged; arrays are of the library that ``restart`` came
        from.

    Raises
    ------
    InputError
        Invalid input (the message names row and node), or scores of more than 4 GiB without ``out``.

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

    Node weights guide the walk; node 3 is a tenth as likely to be visited as node 1:

    >>> star = hf.Graph.from_edges([0, 0], [1, 3], num_nodes=4)
    >>> hf.ppr(star, [{0: 1.0}], node_weights=[[1.0, 0.1]], weighted_nodes=[1, 3]).scores.round(3)
    array([[0.667, 0.303, 0.   , 0.03 ]], dtype=float32)
    """
    options = WalkOptions(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    with engine_for(backend, restart, "restart", ONLY_SEEDS) as engine:
        queries = engine.walks(graph, restart, options.of_batch(engine, graph))
        shape = queries.damping.size, graph.num_nodes
        if out is None and 4 * shape[0] * shape[1] > SCORES_BUDGET:
            what, fix = f"scores of {shape[0]} queries x {shape[1]} nodes", "score fewer queries at a time"
            check_bytes(4 * shape[0] * shape[1], what, SCORES_BUDGET, f"{fix}, use ppr_topk, or pass out=")
        scores = engine.output(out, "out", shape)
        evidence = engine.ops.run(PprCall(graph, queries, scores))
        give, converged = engine.give, evidence.converged.view(np.bool_)
        return PprResult(
            give(scores), give(evidence.iterations), give(evidence.residual), give(evidence.bound), give(converged)
        )


def ppr_topk(
    graph: Graph,
    restart: Any,
    k: int,
    *,
    candidates: Any = None,
    stop: Literal["proven", "tol"] = "proven",
    prove: Literal["order", "set"] = "order",
    walk: Literal["auto", "passes", "local"] = "auto",
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

    Nodes with score 0 are not returned. Order: higher score, then lower id.

    Parameters
    ----------
    graph, restart, damping, tol, max_iter, edge_type_weights, edge_type_norm, allow
        As in :func:`ppr`.
    node_weights, weighted_nodes, backend, threads
        As in :func:`ppr`.
    k : int
        At least 0. Results have min(k, N) columns, or min(k, number of ``candidates``) if all queries share them.
    candidates : Candidates, array_like of bool (N,) or (B, N), of int (M,) or (B, M), or B id lists, optional
        Nodes that can be hits, such as passages; the walk still uses all nodes. :class:`Candidates` are checked once
        for many calls, and so is a ``range``. If given per query, queries with different candidates are computed
        separately.
    stop : {"proven", "tol"}
        "proven" stops a query as soon as the set and order of its hits are proven to equal those of the exact scores. A
        query that is not proven runs to ``tol``. Then, if a bound per node holds (an undirected graph with ``joint``,
        no restart at a node without edges) and ``max_iter`` permits, it gets one step of iterative refinement
        (Wilkinson 1963) and tighter bounds from the neighbourhoods of nodes. A list of 10 then takes about as long as
        :func:`ppr`, a set of 100 half as long again, and an order of 100 twice as long. Nodes with the same edges tie
        exactly and are proven to; other ties remain unproven. The ids of a smaller k are a prefix of those of a larger
        k. Scores of a query that stopped early differ from the exact ones by at most ``score_bounds``.
    prove : {"order", "set"}
        What ``proven`` asserts and what stops a query: "order" is the set of the hits and their order, "set" the set
        only, which takes fewer passes. With "set", hits are ordered by the returned scores, so the hits of a smaller k
        are a subset of those of a larger k, not a prefix.
    walk : {"auto", "passes", "local"}
        How hits are found. By "passes", every pass reads the whole graph, and scores have the same bits on every
        backend; a GPU walks so. A "local" walk, on a CPU, pushes mass from the seeds and reads only the rows that it
        needs, until the list is proven. If it has read three tenths of the graph's entries (at least 32,768),
        ``proven`` is False and the list is the best so far. It needs an undirected graph, ``joint``, ``stop="proven"``,
        and neither ``allow``, ``max_iter`` nor node weights of 0. With these, and with a ``tol`` above 1e-4, "auto"
        walks by passes. Otherwise "auto" walks locally where a sample of the graph says that this pays, and by passes
        where it does not, or where a local walk has not proven the list. Proven lists have the same ids in the same
        order with every ``walk``; scores differ by less than their bounds. ``walks`` of the result says how each query
        walked.
    empty : {"error", "skip"}
        What a query without seeds gets: an error that names it, or an empty list (proven, 0 iterations).

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
    check_choice(stop, "stop", ("proven", "tol"))
    check_choice(prove, "prove", ("order", "set"))
    check_choice(walk, "walk", ("auto", "passes", "local"))
    check_choice(empty, "empty", ("error", "skip"))
    if walk == "local":
        _check_local(graph, stop, max_iter, edge_type_norm, allow)
    options = WalkOptions(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    on_cpu = walk == "local" and backend == "auto" and not is_on_device(getattr(restart, "nodes", restart))
    with engine_for("cpu" if on_cpu else backend, restart, "restart", ONLY_SEEDS) as engine:
        if engine.ops.device is not None:
            if walk == "local":
                raise _not_local(f"backend={backend!r} or seeds on a device, which walks by passes; pass walk='auto'")
            walk = "passes"
        queries = engine.walks(graph, restart, options.of_batch(engine, graph), may_be_empty=empty == "skip")
        if walk == "local" and queries.node_weights is not None and queries.node_weights.effect(graph).excludes.any():
            raise _not_local("node_weights of 0, which exclude nodes; pass walk='auto', or weights above 0")
        batch, parts = queries.damping.size, []
        rankings, walks = _read_candidates(graph, candidates, batch), queries.may_walk
        if not (rankings and rankings[0].queries is None):
            engine.needs_host("candidates", "restart", "give one set for all queries")
        k = _width(k, graph, rankings)
        among = candidates.table if isinstance(candidates, Candidates) else None
        for ranked, rows in rankings:
            at = np.flatnonzero(walks) if rows is None else rows[walks[rows]]
            ranking = NodeRanking(k, ranked, stop == "proven", prove == "order", walk, among)
            hits, evidence = engine.ops.run(PprTopkCall(graph, queries.take(at), ranking))
            parts.append((at, {**hits, **evidence._asdict()}))
        whole = len(parts) == 1 and parts[0][0].size == batch
        arrays = parts[0][1] if whole else _joined(parts, batch, k)
        for flags in ("proven", "converged"):
            arrays[flags] = arrays[flags].view(np.bool_)
        walked = {"_walks": arrays.pop("walks")} if "walks" in arrays else {}
        hits_of_all = PprHits.unchecked(**engine.give_all(arrays), **walked)
        assert isinstance(hits_of_all, PprHits)
        return hits_of_all


def _joined(parts: list[tuple[NDArray[np.int64], dict[str, Any]]], batch: int, k: int) -> dict[str, Any]:
    """Join the results of groups of queries; a query in no group gets an empty list, which is proven."""
    joined: dict[str, Any] = {
        "ids": np.full((batch, k), -1, np.int64),
        "scores": np.full((batch, k), -np.inf, np.float32),
        "counts": np.zeros(batch, np.int64),
        "score_bounds": np.zeros((batch, k), np.float32),
        "proven": np.ones(batch, np.uint8),
        **Evidence.empty(batch)._asdict(),
    }
    walked = [(rows, arrays.pop("walks")) for rows, arrays in parts if "walks" in arrays]
    for rows, arrays in parts:
        for name, array in arrays.items():
            joined[name][rows] = array
    if walked:
        joined["walks"] = LocalWalks.none(batch)
        for rows, walks in walked:
            for to, array in zip(joined["walks"], walks, strict=True):
                to[rows] = array
    return joined


def _check_local(graph: Graph, stop: str, max_iter: int | None, norm: str, allow: Any) -> None:
    """Raise unless local walks are defined for these options."""
    if stop != "proven":
        raise _not_local(f"stop={stop!r}; pass stop='proven', or walk='passes'")
    if norm != "joint":
        raise _not_local(f"edge_type_norm={norm!r}; pass walk='auto'")
    for name, given in (("max_iter", max_iter), ("allow", allow)):
        if given is not None:
            raise _not_local(f"{name}; pass walk='auto'")
    if isinstance(graph, Graph) and graph.directed:
        raise _not_local("a directed graph; pass walk='auto'")


def _not_local(given: str) -> InputError:
    return InputError("unsupported", "walk", "{field} is 'local', which is not defined for {given}", given=given)


class _Ranking(NamedTuple):
    """Candidates, as internal nodes (None: all), and the queries that use them (None: all)."""

    candidates: NDArray[np.int32] | None
    queries: NDArray[np.int64] | None


def _read_candidates(graph: Graph, candidates: Any, batch: int) -> list[_Ranking]:
    """Return the distinct candidate sets with their queries; an empty list if candidates are per query and B = 0."""
    if candidates is None:
        return [_Ranking(None, None)]
    if isinstance(candidates, Candidates):
        if candidates.graph is not graph:
            raise InputError(
                "conflict",
                "candidates",
                "{field} belong to another graph; make them with Candidates(graph, ...)",
            )
        return [_Ranking(candidates.table.nodes, None)]
    ranged = nodes_of_range(graph, candidates)
    if ranged is not None:
        return [_Ranking(ranged, None)]
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
    """Return the width of the results: k, limited by the shared candidates or the nodes."""
    shared = rankings[0].candidates if rankings and rankings[0].queries is None else None
    return min(k, graph.num_nodes if shared is None else shared.size)
