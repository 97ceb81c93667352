"""Batched Personalized PageRank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, same_library, to_float64, to_numpy
from .._threads import thread_count
from .._validation import check_k, check_real, is_real
from ..backends import resolve
from ..backends.calls import DeviceSeeds, Evidence, NodeRanking, PprQueries
from ..backends.node_weights import LEAST_NODE_WEIGHT, NodeWeights
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Graph, PprHits, PprResult, Seeds
from ._captured import refuse_per_query
from ._filter import read_filter
from ._node_weights import device_node_weights, read_node_weights
from ._restart import Restart, read_restart

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: ``ppr`` refuses to make a (B, N) score matrix above this many bytes; pass ``out=``, or use ``ppr_topk``.
SCORES_BUDGET = 1 << 32

#: Joint edge-type weights may differ by this factor.
SMALLEST_TYPE_WEIGHT = 1e-30

EdgeTypeNorm = Literal["joint", "per_type"]


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
    options = _Options(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    device = _device_of(backend, restart)
    if device is not None:
        with device.runtime.on_stream_of(restart.nodes):
            queries = _read_queries(graph, restart, options, device=device)
            on_device = _device_matrix(device, len(restart), graph.num_nodes, out)
            evidence = device.ppr(graph, queries, on_device)
            return _ppr_result(on_device, evidence, lambda array: device.runtime.export(array, restart.nodes))
    engine = resolve(backend)
    queries = _read_queries(graph, restart, options)
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
    options = _Options(
        damping, tol, max_iter, edge_type_weights, edge_type_norm, allow, node_weights, weighted_nodes, threads
    )
    skips = empty == "skip"
    device = _device_of(backend, restart)
    if device is not None:
        if device.runtime.fixed and stop != "tol":
            raise InputError("ppr_topk inside capture needs stop='tol': nothing is read back that could stop a walk")
        rankings = _read_candidates(graph, candidates, len(restart))
        if len(rankings) != 1 or rankings[0].queries is not None:
            raise InputError(
                "candidates are given for each query, which needs restart on the host; give them once for all"
            )
        with device.runtime.on_stream_of(restart.nodes):
            queries = _read_queries(graph, restart, options, skips=skips, device=device)
            width, ranked = _width(k, graph, rankings), rankings[0].candidates
            ranking = NodeRanking(width, ranked, stop == "proven", prove == "order")
            hits, evidence = device.ppr_topk(graph, queries, ranking)
            return _ppr_hits({**hits, **evidence._asdict()}, lambda array: device.runtime.export(array, restart.nodes))
    engine = resolve(backend)
    queries = _read_queries(graph, restart, options, skips=skips)
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


def _device_of(backend: str, restart: Any) -> DeviceOps | None:
    if isinstance(restart, Seeds):
        return device_for(backend, restart.nodes, "restart")
    if is_on_device(restart):
        raise InputError(
            f"restart is a {type(restart).__name__} on a device; walks there start from hopfuse.Seeds(nodes, "
            "weights); for a matrix of numbers move it to the host"
        )
    return None


class _Options(NamedTuple):
    """The options that both walks have, as callers give them."""

    damping: Any
    tol: float
    max_iter: int | None
    edge_type_weights: Any
    edge_type_norm: str
    allow: Any
    node_weights: Any
    weighted_nodes: Any
    threads: int | None


def _read_queries(
    graph: Graph, restart: Any, options: _Options, *, skips: bool = False, device: DeviceOps | None = None
) -> PprQueries:
    if not isinstance(graph, Graph):
        raise InputError(f"graph is a {type(graph).__name__}; build a Graph with Graph.from_edges or Graph.from_scipy")
    if options.edge_type_norm not in ("joint", "per_type"):
        raise InputError(f"edge_type_norm is {options.edge_type_norm!r}; allowed: 'joint', 'per_type'")
    seeds = None
    if device is None:
        rows = read_restart(graph, restart, skips)
    else:
        adopt = device.runtime.adopt
        seeds = DeviceSeeds(adopt(restart.nodes), adopt(restart.weights), skips)
        rows = Restart(np.zeros(len(restart) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    per_type = options.edge_type_norm == "per_type"
    damping = _read_damping(options.damping, rows.batch)
    type_weights = _read_type_weights(options.edge_type_weights, rows.batch, graph, per_type)
    allow = _read_allow(graph, options.allow, rows)
    weights = _read_weights(graph, options, rows, device, per_type=per_type, eta=type_weights, allow=allow)
    return PprQueries(
        *rows,
        seeds=seeds,
        damping=damping,
        edge_type_weights=type_weights,
        per_type=per_type,
        allow=allow,
        tol=_read_tol(options.tol),
        max_iter=_read_max_iter(options.max_iter),
        threads=thread_count(options.threads),
        node_weights=weights,
    )


def _read_weights(
    graph: Graph,
    options: _Options,
    rows: Restart,
    device: DeviceOps | None,
    *,
    per_type: bool,
    eta: NDArray[np.float64] | None,
    allow: NDArray[np.uint8] | None,
) -> NodeWeights | None:
    """Return the node weights, where they are given, as walks read them."""
    given = options.node_weights, options.weighted_nodes
    if options.node_weights is None:
        return read_node_weights(graph, *given, rows, allow)
    lightest = _lightest_walked(graph, None if per_type else eta, rows.batch)
    if device is not None and is_on_device(options.node_weights):
        return device_node_weights(device, graph, *given, rows.batch, per_type=per_type, allow=allow, lightest=lightest)
    if device is not None:
        refuse_per_query("node_weights")
    weights = read_node_weights(graph, *given, rows, allow)
    if weights is not None and lightest is not None:
        _check_node_products(lightest, weights)
    return weights


def _read_damping(damping: Any, batch: int) -> NDArray[np.float64]:
    d = to_numpy(damping, "damping")
    check_real(d, "damping")
    if d.ndim:
        refuse_per_query("damping")
    if d.shape not in ((), (batch,)):
        raise InputError(f"damping has shape {d.shape}; it must be one number or one per query, ({batch},)")
    d = to_float64(d.reshape(-1))
    bad = ~((d >= 0) & (d.astype(np.float32) < 1))
    if np.count_nonzero(bad):
        raise InputError(f"damping is {d[bad][0]}; it must be in [0, 1), and below 1 in float32 too")
    one_each = np.empty(batch)
    one_each[:] = d
    return one_each


def _read_tol(tol: float) -> float:
    if not is_real(tol) or not 0 < tol < np.inf:
        raise InputError(f"tol is {tol!r}; it must be a finite number above 0")
    return float(tol)


def _read_max_iter(max_iter: int | None) -> int:
    if max_iter is None:
        return 0
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or not 1 <= max_iter < 2**63:
        raise InputError(f"max_iter is {max_iter!r}; it must be a whole number, at least 1 and below 2**63, or None")
    return int(max_iter)


def _read_type_weights(weights: Any, batch: int, graph: Graph, per_type: bool) -> NDArray[np.float64] | None:
    types = graph.num_edge_types
    if weights is None:
        return np.full((batch, types), 1.0 / types) if per_type else None
    eta = to_numpy(_by_name(weights, graph, per_type), "edge_type_weights")
    check_real(eta, "edge_type_weights")
    if eta.ndim == 2:
        refuse_per_query("edge_type_weights")
    if eta.shape not in ((types,), (batch, types)):
        raise InputError(f"edge_type_weights has shape {eta.shape}; it must be ({types},) or ({batch}, {types})")
    eta = to_float64(eta)
    if not (np.isfinite(eta) & (eta >= 0)).all():
        raise InputError(f"edge_type_weights are {eta}; they must be finite and at least 0")
    eta = np.array(np.broadcast_to(eta, (batch, types)), order="C")
    if per_type:
        total = eta.sum(axis=1)
        if (total > 1 + 1e-6).any():
            row = int(np.flatnonzero(total > 1 + 1e-6)[0])
            raise InputError(
                f"edge_type_weights of query {row} sum to {total[row]}; with per_type they sum to at most 1"
            )
        return np.asarray(eta / np.maximum(total, 1.0)[:, None])
    eta = _scaled(eta)
    _check_products(graph, eta)
    return None if (eta == 1).all() else eta


def _by_name(weights: Any, graph: Graph, per_type: bool) -> Any:
    """Weights in the order of the graph's edge types, where they are given by name."""
    if not isinstance(weights, Mapping):
        return weights
    unknown = [name for name in weights if name not in graph.edge_type_names]
    if unknown:
        known = ", ".join(graph.edge_type_names)
        raise InputError(f"edge_type_weights has the type {unknown[0]!r}; the graph's edge types are {known}")
    return [weights.get(name, 0.0 if per_type else 1.0) for name in graph.edge_type_names]


def _check_products(graph: Graph, eta: NDArray[np.float64]) -> None:
    """Refuse type weights that vanish in float32 when they multiply the lightest edge of their type."""
    if graph.weight is None:
        return
    product = eta * _lightest(graph)
    lost = (eta > 0) & (product < np.finfo(np.float32).tiny)
    if lost.any():
        b, t = map(int, np.argwhere(lost)[0])
        raise InputError(
            f"edge_type_weights of query {b} make the lightest edge of type {t} weigh {product[b, t]:.3g}, which "
            "float32 cannot hold; make the weight 0 or larger, or scale that type's edges"
        )


def _lightest_walked(graph: Graph, eta: NDArray[np.float64] | None, batch: int) -> NDArray[np.float64] | None:
    """Return the weight of the lightest edge that each query walks, (B,), at most 1; None where all edges weigh 1."""
    if graph.weight is None and eta is None:
        return None
    edges = _lightest(graph)[None] if eta is None else np.where(eta > 0, eta, np.inf) * _lightest(graph)
    return np.ascontiguousarray(np.broadcast_to(edges.min(axis=1, initial=1.0), batch))


def _check_node_products(lightest: NDArray[np.float64], weights: NodeWeights) -> None:
    """Refuse node weights that vanish in float32 when they multiply the lightest edge: a degree may be one product."""
    tiny = float(np.finfo(np.float32).tiny)
    for query in np.flatnonzero(lightest * LEAST_NODE_WEIGHT < tiny):
        least = weights.least(int(query))
        if lightest[query] * least < tiny:
            raise InputError(
                f"node_weights of query {query} make the lightest edge weigh {lightest[query] * least:.3g}, which "
                "float32 cannot hold; make the least weight 0 or larger, or scale the edges"
            )


def _lightest(graph: Graph) -> NDArray[np.float64]:
    """Return the weight of each type's lightest edge, (T,)."""
    if graph.weight is None:
        return np.ones(graph.num_edge_types)
    if "lightest" not in graph.derived:
        types = np.zeros(graph.weight.size, np.uint8) if graph.edge_type is None else graph.edge_type
        lightest = np.full(graph.num_edge_types, np.inf)
        np.minimum.at(lightest, types, graph.weight.astype(np.float64))
        graph.derived["lightest"] = np.where(np.isfinite(lightest), lightest, 1.0)  # 1: a type without edges
    found: NDArray[np.float64] = graph.derived["lightest"]
    return found


def _scaled(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows times a power of two that brings their largest weight into [1, 2): only ratios matter under joint."""
    largest = eta.max(axis=1, initial=0.0)
    lost = (eta > 0) & (eta < largest[:, None] * SMALLEST_TYPE_WEIGHT)
    if lost.any():
        b, t = map(int, np.argwhere(lost)[0])
        raise InputError(
            f"edge_type_weights of query {b} are {eta[b, t]} for type {t} beside {largest[b]}; below "
            f"{SMALLEST_TYPE_WEIGHT} of the largest a weight is lost in float32: make it 0 or larger"
        )
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(eta, np.where(largest > 0, 1 - exponent, 0)[:, None]))


def _read_allow(graph: Graph, allow: Any, rows: Restart) -> NDArray[np.uint8] | None:
    if allow is None:
        return None
    masks = read_filter(allow, rows.batch, graph.num_nodes, "allow").masks(graph.num_nodes)
    ordered = masks if graph.keeps_order else masks[:, graph.node_of]
    internal = np.ascontiguousarray(ordered).view(np.uint8)
    row = np.repeat(np.arange(rows.batch), np.diff(rows.indptr)) if len(masks) != 1 else 0
    outside = internal[row, rows.node] == 0
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        query = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise InputError(
            f"restart row {query} has seed {graph.node_of[rows.node[at]]}, which allow excludes; "
            "drop the seed or allow the node"
        )
    return internal


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
