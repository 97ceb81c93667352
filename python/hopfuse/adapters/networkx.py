"""Answer NetworkX's ``pagerank`` by hopfuse's kernels: ``nx.pagerank(G, backend="hopfuse")``.

NetworkX finds this module through the entry point ``networkx.backends``, converts a graph at its first call and caches
the result in ``G.__networkx_cache__`` until the graph's own methods change the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops.ppr import ppr
from ..types import Graph
from .float64_walk import Float64Walk

__all__ = ["PagerankGraph", "can_run", "convert_from_nx", "convert_to_nx", "pagerank"]

#: Bound on the walk's L1 error, which is less than N tol unless the graph has very few nodes.
WALK_TOL = 1e-6
#: Residuals below this need float64 passes: float32 scores and weights have errors of about 1e-7.
FLOAT32_FLOOR = 1e-5


class PagerankGraph:
    """A NetworkX graph as arrays, which NetworkX passes to :func:`pagerank` and caches.

    Attributes
    ----------
    nodes : list
        N nodes, in the order of ``list(G)``.
    src, dst : ndarray of int64, shape (E,)
        Ends of each edge as positions in ``nodes``; parallel edges are separate, undirected edges are listed once.
    weight : ndarray of float64, shape (E,), or None
        The values of the edge attribute ``attribute``, or None if the graph was converted without one.
    attribute : hashable
        The edge attribute's name.
    directed, multigraph : bool

    Examples
    --------
    >>> import networkx as nx
    >>> from hopfuse.adapters.networkx import convert_from_nx
    >>> len(convert_from_nx(nx.path_graph(3)).src)
    2
    """

    __networkx_backend__ = "hopfuse"

    def __init__(self, graph: Any, attribute: Any, default: Any) -> None:
        self.nodes = list(graph)
        self.directed, self.multigraph = bool(graph.is_directed()), bool(graph.is_multigraph())
        self.attribute = attribute
        edges = list(graph.edges(data=attribute, default=default)) if attribute is not None else list(graph.edges())
        number = dict(zip(self.nodes, range(len(self.nodes)), strict=True)).__getitem__
        self.src = np.fromiter((number(edge[0]) for edge in edges), np.int64, len(edges))
        self.dst = np.fromiter((number(edge[1]) for edge in edges), np.int64, len(edges))
        self.weight = None if attribute is None else _edge_weights([edge[2] for edge in edges], attribute)
        self._kept: dict[bool, tuple[Graph, Float64Walk]] = {}

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Return whether parallel edges are kept apart."""
        return self.multigraph

    def walks(self, *, weighted: bool) -> tuple[Graph, Float64Walk]:
        """Return the graph to walk on, and its walk in float64; both are made once."""
        if weighted not in self._kept:
            weight = self.weight if weighted and self.weight is not None else np.ones(self.src.size)
            held = weight > 0
            src, dst, weight = self.src[held], self.dst[held], weight[held]
            try:
                walk = Graph.from_edges(src, dst, weight, num_nodes=len(self.nodes), directed=self.directed)
            except InputError as error:
                raise NotImplementedError(f"hopfuse cannot walk on this graph: {error}") from error
            self._kept[weighted] = walk, Float64Walk(src, dst, weight, len(self.nodes), self.directed)
        return self._kept[weighted]


class _CachedGraph(PagerankGraph):
    """A graph in NetworkX's cache, which is no part of a pickle: None there makes NetworkX convert the graph again."""

    def __reduce__(self) -> Any:
        return type(None), ()


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: Mapping[Any, Any] | None = None,
    node_attrs: Mapping[Any, Any] | None = None,
    preserve_edge_attrs: Any = False,
    preserve_node_attrs: Any = False,
    preserve_graph_attrs: Any = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> PagerankGraph:
    """Return a NetworkX graph's edges as arrays, with one edge attribute at most.

    Parameters
    ----------
    graph : networkx.Graph
        Of any class; N nodes.
    edge_attrs : mapping of one attribute's name to its default, optional
        ``pagerank`` with a ``weight`` needs that attribute.
    node_attrs, preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs, name, graph_name
        Passed by NetworkX; attributes of nodes and graphs do not affect ``pagerank``. With ``name``, the function that
        NetworkX runs, the result is for NetworkX's cache: pickles of the graph do not contain it, and load without
        hopfuse.

    Returns
    -------
    PagerankGraph

    Raises
    ------
    NotImplementedError
        Several edge attributes, or weights that are negative, not finite or not numbers. Without ``backend=``,
        NetworkX then tries its next backend, or its own code.

    Examples
    --------
    >>> import networkx as nx
    >>> from hopfuse.adapters.networkx import convert_from_nx
    >>> convert_from_nx(nx.path_graph(3), edge_attrs={"weight": 1}).weight
    array([1., 1.])
    """
    if preserve_edge_attrs or (edge_attrs is not None and len(edge_attrs) > 1):
        raise NotImplementedError("hopfuse converts a graph with one edge attribute, the weight")
    attribute, default = next(iter(edge_attrs.items())) if edge_attrs else (None, 1)
    return (PagerankGraph if name is None else _CachedGraph)(graph, attribute, default)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Return a converted graph as a NetworkX graph; any other result as it is.

    Parameters
    ----------
    result : object
    name : str, optional
        NetworkX passes it.

    Returns
    -------
    object
        For a :class:`PagerankGraph`: nodes, edges and the edge attribute that it has.

    Examples
    --------
    >>> import networkx as nx
    >>> from hopfuse.adapters.networkx import convert_from_nx, convert_to_nx
    >>> print(convert_to_nx(convert_from_nx(nx.path_graph(3))))
    Graph with 3 nodes and 2 edges
    """
    if not isinstance(result, PagerankGraph):
        return result
    networkx = import_module("networkx")
    kinds = {
        (False, False): networkx.Graph,
        (False, True): networkx.MultiGraph,
        (True, False): networkx.DiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    made = kinds[result.directed, result.multigraph]()
    made.add_nodes_from(result.nodes)
    ends = ([result.nodes[v] for v in side.tolist()] for side in (result.src, result.dst))
    if result.weight is None:
        made.add_edges_from(zip(*ends, strict=True))
    else:
        made.add_weighted_edges_from(zip(*ends, result.weight.tolist(), strict=True), weight=result.attribute)
    return made


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Return whether the backend can run a call, or the reason why it cannot.

    Parameters
    ----------
    name : str
        A function of NetworkX.
    args, kwargs
        Its arguments.

    Returns
    -------
    bool or str

    Examples
    --------
    >>> from hopfuse.adapters.networkx import can_run
    >>> can_run("pagerank", (None, 1.0), {})
    'alpha is 1.0; hopfuse walks with 0 <= alpha < 1'
    """
    return name == "pagerank" and _pagerank_can_run(*args, **kwargs)


def _pagerank_can_run(
    G: Any,
    alpha: Any = 0.85,
    personalization: Any = None,
    max_iter: Any = 100,
    tol: Any = 1e-6,
    nstart: Any = None,
    weight: Any = "weight",
    dangling: Any = None,
) -> bool | str:
    try:
        fits = 0 <= float(alpha) < 1
    except (TypeError, ValueError):
        fits = False
    return fits or f"alpha is {alpha!r}; hopfuse walks with 0 <= alpha < 1"


def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: Any = "weight",
    dangling: Mapping[Any, float] | None = None,
) -> dict[Any, float]:
    """Return the PageRank of every node, as NetworkX's ``pagerank`` does.

    Called by ``nx.pagerank(G, backend="hopfuse")``, which keeps the converted graph. A call of this function itself
    converts a NetworkX graph each time.

    Parameters
    ----------
    G : networkx.Graph, or PagerankGraph
        Of any class: directed or not, with parallel edges or not.
    alpha : float
        Damping, in [0, 1).
    personalization : mapping of node to float, optional
        Restart weights >= 0; nodes outside the graph are ignored, as in NetworkX. Uniform by default.
    max_iter : int
        Most passes of the float32 walk, and of the float64 passes that follow if N tol is below 1e-5 or ``dangling`` is
        given.
    tol : float
        One more pass would change the result by less than N tol in the L1 norm. Passes go on until the L1 error is at
        most 1e-6, if ``max_iter`` allows.
    nstart : mapping of node to float, optional
        Not used: the solution does not depend on it.
    weight : hashable, optional
        The edge attribute with weights >= 0; an edge without it has weight 1. None: all edges have weight 1.
    dangling : mapping of node to float, optional
        Where nodes without outgoing edges lead; by default as ``personalization``. Otherwise the result is the weighted
        sum of two walks, one from each distribution.

    Returns
    -------
    dict of node to float

    Raises
    ------
    networkx.PowerIterationFailedConvergence
        N tol is not reached in ``max_iter`` passes.
    ZeroDivisionError
        ``personalization`` is 0 at every node.
    NotImplementedError
        Weights or restarts are negative, not finite or not numbers, or the graph was converted without ``weight``.

    References
    ----------
    The interface: NetworkX, ``networkx.pagerank``.

    Examples
    --------
    >>> import networkx as nx
    >>> from hopfuse.adapters.networkx import pagerank
    >>> {node: round(score, 3) for node, score in pagerank(nx.path_graph(3)).items()}
    {0: 0.257, 1: 0.486, 2: 0.257}
    """
    reason = _pagerank_can_run(G, alpha)
    if reason is not True:
        raise NotImplementedError(reason)
    graph = G if isinstance(G, PagerankGraph) else PagerankGraph(G, weight, 1)
    nodes = graph.nodes
    if not nodes:
        return {}
    if weight is not None and graph.attribute != weight:
        kept = "without edge attributes" if graph.attribute is None else f"with edge attribute {graph.attribute!r}"
        raise NotImplementedError(
            f"the graph was converted {kept}, and weight is {weight!r}; convert it with edge_attrs={{{weight!r}: 1}}, "
            "or pass weight=None to count edges alike"
        )
    if nstart is not None and not sum(nstart.values()):
        raise NotImplementedError("nstart sums to 0, and cannot be normalised")
    restart = _distribution(personalization, nodes, "personalization")
    lost = restart if dangling is None else _distribution(dangling, nodes, "dangling")
    walk, float64_walk = graph.walks(weighted=weight is not None)
    most, needed, alpha = int(max_iter), len(nodes) * float(tol), float(alpha)
    if most < 1:
        raise _not_converged(max_iter)
    rows = [restart] if lost is restart or not float64_walk.dangling.size else [restart, lost]
    walked = ppr(walk, np.stack(rows), damping=alpha, tol=WALK_TOL, max_iter=most)
    if len(rows) == 1 and needed >= FLOAT32_FLOOR:
        if not walked.residual[0] < needed:
            raise _not_converged(max_iter)
        return dict(zip(nodes, walked.scores[0].tolist(), strict=True))
    x = _superposition(walked.scores.astype(np.float64), float64_walk, alpha)
    for _ in range(most):
        last, x = x, float64_walk.step(x, alpha, restart, lost)
        if np.abs(x - last).sum() < needed:
            return dict(zip(nodes, x.tolist(), strict=True))
    raise _not_converged(max_iter)


def _superposition(q: NDArray[np.float64], walk: Float64Walk, alpha: float) -> NDArray[np.float64]:
    """Return the walk with the restart p of q[0] whose dangling mass goes to the restart w of q[1], from both walks.

    With z(s) = (1 - alpha)(I - alpha P')^-1 s and D(x) the mass of x at dangling nodes, x = z(p) + alpha D(x) / (1 -
    alpha) z(w).
    """
    if len(q) == 1:
        only: NDArray[np.float64] = q[0]
        return only
    z = [walk.unnormalised(one, alpha) for one in q]
    lost = [walk.at_dangling(one) for one in z]
    returned = alpha * lost[0] / (1 - alpha - alpha * lost[1])
    x: NDArray[np.float64] = z[0] + returned * z[1]
    x /= x.sum()
    return x


def _distribution(given: Mapping[Any, float] | None, nodes: list[Any], name: str) -> NDArray[np.float64]:
    """Return the weights of all nodes, with sum 1."""
    if given is None:
        return np.full(len(nodes), 1.0 / len(nodes))
    values = _floats(map(given.get, nodes, repeat(0)), len(nodes), name)
    total = values.sum()
    if total == 0:
        raise ZeroDivisionError(f"{name} is 0 at every node of the graph")
    shares: NDArray[np.float64] = values / total
    return shares


def _edge_weights(values: list[Any], attribute: Any) -> NDArray[np.float64]:
    return _floats(values, len(values), f"edge attribute {attribute!r}")


def _floats(values: Any, count: int, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.fromiter(values, np.float64, count)
    except (TypeError, ValueError) as error:
        raise NotImplementedError(f"{name} must be numbers: {error}") from error
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        wrong = numbers[~(np.isfinite(numbers) & (numbers >= 0))][0]
        raise NotImplementedError(f"{name} has {wrong}; hopfuse walks with finite numbers of at least 0")
    return numbers


def _not_converged(max_iter: int) -> Exception:
    error: Exception = import_module("networkx").PowerIterationFailedConvergence(max_iter)
    return error
