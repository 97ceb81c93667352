"""Answer python-igraph's ``personalized_pagerank`` by hopfuse's kernels: one query, a batch, or by a patched graph.

igraph is not imported: graphs are read by their methods.
"""

from __future__ import annotations

import random
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, same_library, to_numpy
from .._validation import check_choice, check_excludes, check_length, check_unused, check_weights, is_whole, wrong_type
from ..errors import InputError
from ..ops.ppr import ppr
from ..types import Graph
from .float64_walk import Float64Walk, refine

__all__ = ["accelerate", "from_igraph", "personalized_pagerank", "personalized_pagerank_batch"]

#: Bound on the L1 error. igraph's own solver stops at 1e-10, but 1e-6 in total does not affect rankings in practice.
TOL = 1e-6


def from_igraph(graph: Any, *, weights: Any = None, directed: bool = True) -> Graph:
    """Return a graph for the walk that igraph makes.

    Weights of parallel edges are summed. In undirected walks igraph counts a self-loop twice, so its weight is doubled.
    Edges of weight 0 are left out.

    Parameters
    ----------
    graph : igraph.Graph
        N vertices.
    weights : str, or sequence of float, optional
        The name of an edge attribute, or a weight >= 0 for each edge; 1 each by default.
    directed : bool
        False: edges of a directed graph go both ways.

    Returns
    -------
    Graph
        N nodes, numbered as the vertices.

    Raises
    ------
    InputError
        ``graph`` is not an igraph graph, or weights are missing, negative or not finite.

    Examples
    --------
    >>> import igraph
    >>> from hopfuse.adapters.igraph import from_igraph
    >>> from_igraph(igraph.Graph([(0, 1), (1, 2)])).num_nodes
    3
    """
    _check_graph(graph)
    return _read(graph, weights, directed).walk


def personalized_pagerank(
    graph: Any,
    vertices: Any = None,
    directed: bool = True,
    damping: float = 0.85,
    reset: Any = None,
    reset_vertices: Any = None,
    weights: Any = None,
    arpack_options: None = None,
    implementation: str = "prpack",
) -> list[float] | float:
    """Return the result of igraph's ``Graph.personalized_pagerank``, with the same arguments.

    Every call reads the graph anew, which takes longer than the walk: :func:`accelerate` keeps it, and
    :func:`personalized_pagerank_batch` walks for many queries at once.

    Parameters
    ----------
    graph : igraph.Graph
    vertices : int, str, Vertex, sequence of them, or VertexSeq, optional
        Vertices whose scores are returned, by number or name; all by default.
    directed : bool
        False: edges of a directed graph go both ways.
    damping : float
        Probability of walking on, in [0, 1).
    reset : sequence of float, or str, optional
        Restart weight of each vertex, or the name of a vertex attribute; the same for all by default.
    reset_vertices : int, str, Vertex, sequence of them, or VertexSeq, optional
        Vertices to restart at instead, by number or name, weighted by the number of times they are given.
    weights : str, or sequence of float, optional
        Edge attribute or a weight >= 0 for each edge; 1 each by default.
    arpack_options : None
        Not supported: hopfuse does not use ARPACK.
    implementation : {"prpack", "arpack"}
        Either gives the same walk; its sum of absolute errors is at most 1e-6.

    Returns
    -------
    list of float, or float
        Scores of ``vertices``, which sum to 1 over all vertices; a number for a single vertex.

    Raises
    ------
    InputError
        igraph would refuse an argument, ``arpack_options`` are given, or the damping is 1.

    Warns
    -----
    RuntimeWarning
        The error cannot be proven to be at most 1e-6, since the damping is too close to 1.

    References
    ----------
    The interface: python-igraph, ``Graph.personalized_pagerank``.

    Examples
    --------
    >>> import igraph
    >>> from hopfuse.adapters.igraph import personalized_pagerank
    >>> path = igraph.Graph([(0, 1), (1, 2)])
    >>> [round(score, 3) for score in personalized_pagerank(path, reset_vertices=[0], damping=0.5)]
    [0.583, 0.333, 0.083]
    """
    check_unused("arpack_options", arpack_options, "hopfuse does not use ARPACK")
    check_choice(implementation, "implementation", ("prpack", "arpack"))  # one walk here
    _check_graph(graph)
    read = _walk(graph, weights, bool(directed))
    if not read.walk.num_nodes:
        return []
    chosen = _vertices(graph, vertices, "vertices")
    restart = _restart(graph, reset, reset_vertices)[None, :]
    result = ppr(read.walk, restart, damping=damping, tol=TOL)
    scores = result.scores[0]
    if not result.converged[0]:
        scores = _refined(read, restart, scores[None, :], np.array([float(damping)]), TOL, {})[0]
    found: list[float] | float = (scores if chosen is None else scores[chosen]).tolist()
    return found


def personalized_pagerank_batch(
    graph: Any,
    resets: Any,
    *,
    directed: bool = True,
    damping: Any = 0.85,
    weights: Any = None,
    tol: float = TOL,
    backend: str = "auto",
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return scores of all vertices for many queries at once.

    Parameters
    ----------
    graph : igraph.Graph, or Graph
        A :class:`hopfuse.Graph` of :func:`from_igraph` is used as it is; with it, leave out ``weights`` and
        ``directed``. An accelerated graph is read once, as in :func:`accelerate`; any other igraph graph in every call.
    resets : array_like (B, N), scipy.sparse (B, N), Seeds, or list of {vertex: weight}
        A vertex is a number, or a name of an igraph graph.
    directed, weights
        As in :func:`personalized_pagerank`.
    damping : float or array_like (B,)
    tol : float
        Bound on the sum of a query's absolute errors, before scores are rounded to float32 (about 1e-7 in sum). Queries
        for which float32 does not prove it are refined in float64, one by one; those of Seeds on a device, whose scores
        stay there, are not.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional

    Returns
    -------
    ndarray of float32 (B, N)

    Raises
    ------
    InputError
        ``resets`` has lists of vertices, an unknown name, or what :func:`hopfuse.ppr` refuses.

    Warns
    -----
    RuntimeWarning
        A query's error cannot be proven to be at most ``tol``, since its damping is too close to 1.

    Examples
    --------
    >>> import igraph
    >>> from hopfuse.adapters.igraph import personalized_pagerank_batch
    >>> path = igraph.Graph([(0, 1), (1, 2)])
    >>> personalized_pagerank_batch(path, [{0: 1.0}, {2: 1.0}], damping=0.5).round(3)
    array([[0.583, 0.333, 0.083],
           [0.083, 0.333, 0.583]], dtype=float32)
    """
    if isinstance(graph, Graph):
        for name, given in (("weights", weights), ("directed", None if directed else directed)):
            check_excludes(name, given, "graph", graph, "a hopfuse Graph, which has its own")
        read = _Read.of(graph)
    else:
        _check_graph(graph)
        read = _walk(graph, weights, bool(directed))
        resets = _numbered_resets(graph, resets)
    options: dict[str, Any] = {"backend": backend, "threads": threads}
    result = ppr(read.walk, resets, damping=damping, tol=tol, **options)
    scores: NDArray[np.float32] = result.scores
    if is_on_device(scores):
        return scores
    unproven = np.flatnonzero(~to_numpy(result.converged, "converged"))
    if unproven.size:
        restarts = to_numpy(ppr(read.walk, resets, damping=0.0, **options).scores, "resets")[unproven]
        dampings = np.broadcast_to(np.asarray(damping, np.float64), len(scores))[unproven]
        found = _refined(read, restarts, to_numpy(scores, "scores")[unproven], dampings, tol, options)
        scores[unproven] = same_library(scores)(found.astype(np.float32))
    return scores


def _refined(
    read: _Read,
    restarts: NDArray[Any],
    scores: NDArray[np.float32],
    damping: NDArray[np.float64],
    tol: float,
    options: dict[str, Any],
) -> NDArray[np.float64]:
    """Return the scores of walks whose error float32 does not prove to be at most ``tol``, by refinement in float64."""
    rows, bounds = [], []
    for restart, row, alpha in zip(
        restarts.astype(np.float64), scores.astype(np.float64), damping.tolist(), strict=True
    ):
        x, bound = refine(read.walk, read.exact, restart / restart.sum(), row, alpha, tol, **options)
        rows.append(x)
        bounds.append(bound)
    if max(bounds) > tol:
        warnings.warn(
            f"damping {damping[np.argmax(bounds)]:g} is too close to 1: the sum of absolute errors is proven to be at "
            f"most {max(bounds):.1e}, not {tol:.1e}",
            RuntimeWarning,
            stacklevel=3,
        )
    return np.array(rows)


def accelerate(graph: Any) -> Any:
    """Make ``graph.personalized_pagerank`` run by hopfuse: one line for code that calls it in a loop.

    The first call with each edge attribute and direction reads the graph. Each call compares the edges and the
    attribute with what was read, and reads them again after a change. Only the class of the object changes, to a
    subclass; pickles and copies have igraph's own class, and do not need hopfuse. Errors are both InputErrors and of
    the class that igraph raises, if it refuses the arguments.

    Parameters
    ----------
    graph : igraph.Graph

    Returns
    -------
    igraph.Graph
        The same object.

    Raises
    ------
    InputError
        ``graph`` is not an igraph graph.

    Examples
    --------
    >>> import igraph
    >>> from hopfuse.adapters.igraph import accelerate
    >>> path = accelerate(igraph.Graph([(0, 1), (1, 2)]))
    >>> round(path.personalized_pagerank(vertices=1, reset_vertices=[0], damping=0.5), 3)
    0.333
    """
    _check_graph(graph)
    if id(graph) not in _WALKS:
        _WALKS[id(graph)] = _Walks()
        weakref.finalize(graph, _WALKS.pop, id(graph), None)
        base: Any = type(graph)
        if not getattr(base, "_is_accelerated", False):
            graph.__class__ = _accelerated_class(base)
    return graph


@cache
def _accelerated_class(base: Any) -> Any:
    """Return a subclass with hopfuse's walk, whose copies and pickles have the base class."""

    class AcceleratedGraph(base):  # type: ignore[misc]
        __slots__ = ()
        _is_accelerated = True

        def personalized_pagerank(self, *args: Any, **options: Any) -> list[float] | float:
            with _igraphs_errors(lambda: base.personalized_pagerank(self, *args, **options)):
                return personalized_pagerank(self, *args, **options)

        personalized_pagerank.__doc__ = personalized_pagerank.__doc__

        def pagerank(
            self,
            vertices: Any = None,
            directed: bool = True,
            damping: float = 0.85,
            weights: Any = None,
            arpack_options: None = None,
            implementation: str = "prpack",
        ) -> list[float] | float:
            # igraph's own passes arpack_options to personalized_pagerank in every call
            given = (vertices, directed, damping, weights, arpack_options, implementation)
            with _igraphs_errors(lambda: base.pagerank(self.copy(), *given)):
                return personalized_pagerank(self, *given[:3], None, None, *given[3:])

        pagerank.__doc__ = base.pagerank.__doc__

        def copy(self) -> Any:
            made = base.copy(self)
            made.__class__ = base
            return made

        def __reduce__(self) -> Any:
            return (base, *base.__reduce__(self)[1:])

    return AcceleratedGraph


@contextmanager
def _igraphs_errors(call: Callable[[], Any]) -> Iterator[None]:
    """Raise an InputError also as the class that igraph raises for the same call, if it raises one."""
    try:
        yield
    except InputError as error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except Exception as theirs:
                kind: Any = type(theirs)
                raise error.about(kind=_error_class(kind)) from None
        raise


@cache
def _error_class(theirs: Any) -> type[InputError]:
    """Return a class of errors that are also igraph's; pickled, they are InputErrors."""
    if issubclass(InputError, theirs):
        return InputError
    return type(
        "InputError", (InputError, theirs), {"__reduce__": lambda error: error.about(kind=InputError).__reduce__()}
    )


class _Read:
    """A graph to walk on, in float32 and in float64."""

    def __init__(self, walk: Graph, exact: Callable[[], Float64Walk]) -> None:
        self.walk, self._exact = walk, exact

    @classmethod
    def of(cls, graph: Graph) -> _Read:
        """Return a hopfuse graph, whose weights are in float32."""

        def exact() -> Float64Walk:
            src, dst, weight, _ = graph.edges()
            return Float64Walk(src, dst, weight.astype(np.float64), graph.num_nodes, graph.directed)

        return cls(graph, exact)

    @cached_property
    def exact(self) -> Float64Walk:
        """The walk in float64, made when float32 is not enough."""
        return self._exact()


def _read(graph: Any, weights: Any, directed: bool) -> _Read:
    edges = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
    weight = _edge_weights(graph, weights, len(edges))
    nodes, is_directed = graph.vcount(), bool(directed and graph.is_directed())
    if not is_directed:
        weight = np.where(edges[:, 0] == edges[:, 1], 2.0 * weight, weight)
    held = weight > 0
    src, dst, weight = *edges[held].T, weight[held]
    walk = Graph.from_edges(src, dst, weight, num_nodes=nodes, directed=is_directed)
    return _Read(walk, lambda: Float64Walk(src, dst, weight, nodes, is_directed))


class _Walks:
    """The graphs that were made from an accelerated igraph graph, kept until its edges change.

    igraph does not report changes, and listing the edges takes longer than a walk. So each edge gets a random number,
    and the sums of these numbers over the edges of each vertex serve as a fingerprint, which igraph's ``strength``
    computes in a tenth of the time (213,621 edges: 4 to 8 ms instead of 70 ms). Two different edge lists have equal
    sums with a probability of about 2**-50.
    """

    def __init__(self) -> None:
        self._edges: Any = None
        self._numbers: list[float] = []
        self._kept: dict[tuple[str | None, bool], tuple[list[Any] | None, _Read]] = {}
        self._lock = Lock()

    def walk(self, graph: Any, weights: str | None, directed: bool) -> _Read:
        with self._lock:
            return self._walk(graph, weights, directed)

    def _walk(self, graph: Any, weights: str | None, directed: bool) -> _Read:
        if len(self._numbers) != graph.ecount():
            self._numbers = [random.random() for _ in range(graph.ecount())]
        edges = (graph.vcount(), graph.is_directed(), self._strengths(graph, "out"), self._strengths(graph, "in"))
        if edges != self._edges:
            self._edges, self._kept = edges, {}
        values = None if weights is None else _attribute(graph.es, weights, "weights")
        kept = self._kept.get((weights, directed))
        if kept is None or kept[0] != values:
            kept = values, _read(graph, weights, directed)
            self._kept[weights, directed] = kept
        return kept[1]

    def _strengths(self, graph: Any, mode: str) -> list[float]:
        if mode == "in" and not graph.is_directed():
            return []
        found: list[float] = graph.strength(weights=self._numbers, mode=mode)
        return found


#: By ``id``, since igraph graphs are not hashable. An entry is removed with its graph.
_WALKS: dict[int, _Walks] = {}


def _walk(graph: Any, weights: Any, directed: bool) -> _Read:
    walks = _WALKS.get(id(graph))
    if walks is None or not (weights is None or isinstance(weights, str)):  # explicit weights are not cached
        return _read(graph, weights, directed)
    return walks.walk(graph, weights, directed)


def _restart(graph: Any, reset: Any, reset_vertices: Any) -> NDArray[np.float64]:
    n = graph.vcount()
    check_excludes("reset", reset, "reset_vertices", reset_vertices)
    if reset_vertices is not None:
        named = np.atleast_1d(np.asarray(_vertices(graph, reset_vertices, "reset_vertices"), np.int64))
        if not named.size:
            raise InputError("empty", "reset_vertices", "{field} is empty; give at least one vertex")
        return np.bincount(named, minlength=n).astype(np.float64)
    if reset is None:
        return np.ones(n)
    values = _weights(graph.vs, reset, "reset", "vertex")
    if not values.any():
        raise InputError("zero", "reset", "{field} is 0 at every vertex; give at least one a weight above 0")
    return values


def _numbered_resets(graph: Any, resets: Any) -> Any:
    """Return the resets of a batch with vertex numbers in place of names; refuse lists of vertices."""
    if isinstance(resets, Mapping):
        return _numbered_resets(graph, [resets])
    if not isinstance(resets, list | tuple):
        return resets
    numbered = []
    for at, reset in enumerate(resets):
        if isinstance(reset, Mapping) and any(isinstance(vertex, str) for vertex in reset):
            numbers = {vertex: _number_of(graph, vertex) for vertex in reset}
            unknown = [vertex for vertex, number in numbers.items() if number is None]
            if unknown:
                raise _unknown_vertex(graph.vcount(), unknown[0], f"resets[{at}]")
            reset = {numbers[vertex]: weight for vertex, weight in reset.items()}
        elif isinstance(reset, list | tuple) and len(reset) != graph.vcount():
            raise InputError(
                "length",
                f"resets[{at}]",
                "{field} has {given} entries for {allowed} vertices; give a weight for each vertex, or "
                "{{vertex: weight}} for the vertices to restart at",
                given=len(reset),
                allowed=graph.vcount(),
            )
        numbered.append(reset)
    return numbered


def _vertices(graph: Any, given: Any, name: str) -> int | NDArray[np.int64] | None:
    """Return the vertex numbers of an int, a name, a Vertex, a VertexSeq or a sequence of such.

    There is no Python loop over vertices unless a sequence has names or Vertex objects: HippoRAG passes range(N).
    """
    if given is None:
        return None
    n = graph.vcount()
    given = getattr(given, "indices", given)  # a VertexSeq is not an Iterable
    if isinstance(given, range):
        return _range(given, n, name)
    is_one = _number_of(graph, given) is not None
    if not is_one and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise InputError("type", name, "{field} is {given!r}; give numbers or names of vertices", given=given)
    items = [given] if is_one else given if isinstance(given, np.ndarray) else list(given)
    numbers = _numbers_below(graph, items)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= n))
    if wrong.size:
        raise _unknown_vertex(n, items[wrong[0]], name)
    return int(numbers[0]) if is_one else numbers


def _range(given: range, n: int, name: str) -> NDArray[np.int64]:
    if given and not (0 <= given[0] < n and 0 <= given[-1] < n):
        raise _unknown_vertex(n, next(number for number in given if not 0 <= number < n), name)
    return np.arange(given.start, given.stop, given.step, dtype=np.int64)


def _unknown_vertex(n: int, given: Any, name: str) -> InputError:
    return InputError(
        "unknown",
        name,
        "{field} has {given!r}; allowed: {allowed}",
        given=given,
        allowed=f"numbers from 0 to {n - 1}, or names that the graph has",
    )


def _numbers_below(graph: Any, items: NDArray[Any] | list[Any]) -> NDArray[np.int64]:
    """Return the vertex numbers of items; items that are not vertices get numbers outside 0 .. n - 1."""
    n = graph.vcount()
    if isinstance(items, np.ndarray) and items.ndim == 1 and items.dtype.kind in "iu":
        return items.astype(np.int64)  # values beyond int64 become negative
    if set(map(type, items)) == {int} and min(items) >= 0 and max(items) < n:
        return np.array(items, np.int64)
    numbers = (_number_of(graph, item) for item in items)
    return np.array([-1 if number is None or not 0 <= number < n else number for number in numbers], np.int64)


def _number_of(graph: Any, vertex: Any) -> int | None:
    """Return the number of an int, a vertex's name or an igraph.Vertex; None for anything else."""
    if isinstance(vertex, str):
        try:
            return int(graph.vs.find(vertex).index)
        except ValueError:  # no vertex has the name, or the graph has no names
            return None
    number = getattr(vertex, "index", vertex)
    return int(number) if is_whole(number) else None


def _edge_weights(graph: Any, weights: Any, edges: int) -> NDArray[np.float64]:
    return np.ones(edges) if weights is None else _weights(graph.es, weights, "weights", "edge")


def _weights(elements: Any, given: Any, name: str, noun: str) -> NDArray[np.float64]:
    """Return a number, finite and at least 0, of each vertex or edge; a string names an attribute of theirs."""
    numbers = _attribute(elements, given, name) if isinstance(given, str) else given
    try:
        values = np.array(numbers if isinstance(numbers, np.ndarray) else list(numbers), np.float64)
        (size,) = values.shape
    except (TypeError, ValueError) as error:
        raise InputError("type", name, "{field} must be one list of numbers: {error}", error=error) from error
    check_length(size, name, len(elements), noun)
    check_weights(values, name)
    return values


def _attribute(elements: Any, given: str, name: str) -> list[Any]:
    if given not in elements.attributes():
        raise InputError(
            "unknown",
            name,
            "{field} is {given!r}, which is not an attribute; allowed: {allowed}",
            given=given,
            allowed=", ".join(elements.attributes()) or "none",
        )
    values: list[Any] = elements[given]
    return values


def _check_graph(graph: Any) -> None:
    if not all(hasattr(graph, method) for method in ("get_edgelist", "vcount", "ecount", "is_directed")):
        raise wrong_type(graph, "graph", "an igraph.Graph")
