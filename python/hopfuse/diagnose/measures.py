"""Measures of two rankings (overlap, correlation of errors, rank-biased overlap, losses of pools) and of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_length, check_number, check_shape, check_some, check_weights, check_whole, import_extra
from ..errors import InputError
from ..evaluate.metrics import Values, normalise_answer
from ..evaluate.qrels import Qrels
from ..evaluate.runs import gold_ranks
from ..types import Graph, Hits


def overlap(a: Hits, b: Hits, k: int) -> Values:
    """Return the Jaccard overlap of the first k hits: the number of passages in both lists over that in either.

    Parameters
    ----------
    a, b : Hits
        B rows each, at least k wide.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN if both lists are empty.

    Raises
    ------
    InputError
        The numbers of rows differ, or k is below 1 or above a width.

    References
    ----------
    Jaccard, Bull. Soc. Vaud. Sci. Nat. 37 (1901).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import overlap
    >>> overlap(hf.Hits([[1, 2, 3]], [[3.0, 2.0, 1.0]]), hf.Hits([[3, 1, 9]], [[3.0, 2.0, 1.0]]), 2)
    array([0.33333333])
    """
    check_length(len(b), "b", len(a), "row")
    _check_size("k", k, [a, b])
    values = np.full(len(a), np.nan)
    for row in range(len(a)):
        ours, theirs = ({passage for passage, _ in hits.row(row)[:k]} for hits in (a, b))
        if ours or theirs:
            values[row] = len(ours & theirs) / len(ours | theirs)
    return values


def error_correlation(a: Values, b: Values) -> float:
    """Return the correlation of two systems' errors, as the phi coefficient of a metric with values 0 or 1.

    Near 1, the systems fail on the same queries, and fusing them gains little; near 0 or below, they fail on different
    ones.

    Parameters
    ----------
    a, b : ndarray of float64, shape (B,)
        0, 1 or NaN for each query; queries with NaN in either are left out.

    Returns
    -------
    float
        In [-1, 1]; NaN if all values of either system are equal.

    Raises
    ------
    InputError
        Shapes differ, or values are other than 0, 1 and NaN.

    References
    ----------
    Yule, J. R. Stat. Soc. 75 (1912); as a measure of diversity: Kuncheva and Whitaker, Mach. Learn. 51 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.diagnose import error_correlation
    >>> error_correlation(np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0]))
    0.0
    """
    check_shape(b.shape, "b", a.shape, reason="a value for each query of a")
    defined = ~(np.isnan(a) | np.isnan(b))
    ours, theirs = a[defined], b[defined]
    if not (np.isin(ours, (0, 1)).all() and np.isin(theirs, (0, 1)).all()):
        raise InputError(
            "range", "a", "{field} and {@b} must have values of 0 and 1, such as those of hit@k; give such a metric"
        )
    n, right, other, both = ours.size, ours.sum(), theirs.sum(), (ours * theirs).sum()
    spread = right * (n - right) * other * (n - other)
    return float((n * both - right * other) / np.sqrt(spread)) if spread > 0 else float("nan")


def pool_loss(pools: Sequence[Hits], qrels: Qrels, size: int) -> Values:
    """Return the share of each query's gold passages that no pool has among its first ``size`` hits.

    No fusion of these pools can find the passages that are lost.

    Parameters
    ----------
    pools : sequence of Hits
        At least one; B rows each, at least ``size`` wide.
    qrels : Qrels
        Judgements of the same B queries.
    size : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query without gold passages.

    Raises
    ------
    InputError
        There is no pool, the numbers of rows differ, or size is below 1 or above a width.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import pool_loss
    >>> from hopfuse.evaluate import Qrels
    >>> dense, graph = hf.Hits([[1, 7]], [[0.9, 0.1]]), hf.Hits([[2, 8]], [[0.6, 0.2]])
    >>> pool_loss([dense, graph], Qrels(["a"], [[1, 2, 7, 8]]), 1)
    array([0.5])
    """
    check_some(pools, "pools", "pool")
    for at, pool in enumerate(pools):
        check_length(len(pool), f"pools[{at}]", len(qrels), "query")
    _check_size("size", size, pools)
    values = np.full(len(qrels), np.nan)
    for row, gold in enumerate(qrels.gold):
        if gold:
            found = {p for pool in pools for p, rank in gold_ranks(pool, qrels, row).items() if rank and rank <= size}
            values[row] = (len(gold) - len(found)) / len(gold)
    return values


def _check_size(name: str, size: int, lists: Sequence[Hits]) -> None:
    width = min(hits.shape[1] for hits in lists)
    check_whole(size, name, width)


def rank_biased_overlap(a: Hits, b: Hits, *, p: float = 0.9) -> Values:
    """Return the extrapolated rank-biased overlap (RBO) of the two lists of each query.

    RBO is the share of passages that two lists have in common down to depth d, averaged over all depths with weights
    (1 - p) p^(d - 1). It is defined for infinite lists. For finite ones, the agreement at the end of the longer list is
    extrapolated to all greater depths, and the shorter list is extrapolated at the rate of agreement at its end. This
    is equation 32 of the reference, a point estimate between RBO's lower and upper bound. Lists of different lengths
    can be compared, and equal lists have RBO 1.

    Parameters
    ----------
    a, b : Hits
        B rows each, of any width; all valid hits of a row count.
    p : float, in (0, 1)
        Probability that a reader goes on from a passage to the next. The first ten passages have 86 % of the weight
        at 0.9, and all but 0.02 % at 0.5.

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1], symmetric in a and b; 0 if only one list is empty, NaN if both are.

    Raises
    ------
    InputError
        The numbers of rows differ, or p is outside (0, 1).

    References
    ----------
    Webber, Moffat and Zobel, ACM TOIS 28 (2010).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import rank_biased_overlap
    >>> a, b = hf.Hits([[1, 2, 3]], [[3.0, 2.0, 1.0]]), hf.Hits([[2, 1, 3]], [[3.0, 2.0, 1.0]])
    >>> rank_biased_overlap(a, b, p=0.5)
    array([0.5])
    """
    check_length(len(b), "b", len(a), "row")
    check_persistence(p)
    rows = ([[passage for passage, _ in hits.row(row)] for hits in (a, b)] for row in range(len(a)))
    return np.fromiter((_extrapolated(lists, p) for lists in rows), np.float64, len(a))


def check_persistence(p: float) -> None:
    """Refuse a parameter of the rank-biased overlap that is not strictly between 0 and 1."""
    check_number(p, "p", above=0, below=1)


def _extrapolated(lists: list[list[int]], p: float) -> float:
    short, long = sorted(lists, key=len)
    s, length = len(short), len(long)
    if s == 0:
        return 0.0 if length else float("nan")
    shared = _shared(short, long)
    depth = np.arange(1, length + 1)
    # Passages that the shorter list would share beyond its end, at the rate of agreement at its end.
    extrapolated = shared[s - 1] / s * np.maximum(depth - s, 0)
    agreement = (shared + extrapolated) / depth
    value = (1 - p) * (agreement * p ** (depth - 1.0)).sum() + agreement[-1] * p**length
    return float(min(value, 1.0))


def _shared(short: list[int], long: list[int]) -> NDArray[np.int64]:
    """Return the number of passages that both lists have, down to each depth of the longer one."""
    place = {passage: at for at, passage in enumerate(short)}
    enters = [max(at, place[passage]) for at, passage in enumerate(long) if passage in place]
    return np.cumsum(np.bincount(np.array(enters, np.int64), minlength=len(long)))


# ---- Of a graph ------------------------------------------------------------------------------------------------------


def connected_components(graph: Graph) -> NDArray[np.int64]:
    """Return, for each node, the smallest node id of its connected component; edge directions are ignored.

    Parameters
    ----------
    graph : Graph
        N nodes.

    Returns
    -------
    ndarray of int64, shape (N,)
        Indexed by the caller's node ids.

    Raises
    ------
    MissingExtraError
        SciPy is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import connected_components
    >>> connected_components(hf.Graph.from_edges([0, 3], [2, 4], num_nodes=6))
    array([0, 1, 0, 3, 3, 5])
    """
    import_extra("scipy", "finding a graph's components")
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components as label_components

    ones = np.ones(graph.indices.size, np.int8)
    ends: NDArray[np.int32] | NDArray[np.int64] = graph.indptr
    if ones.size <= np.iinfo(np.int32).max:  # SciPy 1.11 looks at indices of 32 bits only
        ends = ends.astype(np.int32)
    matrix = csr_array((ones, graph.indices, ends), shape=(graph.num_nodes, graph.num_nodes))
    count, component = label_components(matrix, directed=False)
    smallest = np.full(count, graph.num_nodes, np.int64)
    np.minimum.at(smallest, component, graph.node_of)
    return smallest[component[graph.internal_of]]


def shared_names(names: Iterable[str], aliases: Iterable[Sequence[str]] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the names that several entities share, which may split the mass of a walk.

    Parameters
    ----------
    names : iterable of str, E entries
    aliases : iterable of sequences of str, E entries, optional
        Other names of each entity.

    Returns
    -------
    dict of str to tuple of int
        The entities of each name that at least two have, in ascending order, by name after
        :func:`hopfuse.evaluate.normalise_answer`. Names without a letter or digit are left out.

    Raises
    ------
    InputError
        The numbers of names and rows of aliases differ.

    Examples
    --------
    >>> from hopfuse.diagnose import shared_names
    >>> shared_names(["The Beatles", "Ada", "Beatles"], [[], ["A. Lovelace"], []])
    {'beatles': (0, 2)}
    """
    own = [[name] for name in names]
    others = [()] * len(own) if aliases is None else [tuple(row) for row in aliases]
    check_length(len(others), "aliases", len(own), "name")
    entities: dict[str, list[int]] = {}
    for entity, row in enumerate(zip(own, others, strict=True)):
        for key in {normalise_answer(name) for part in row for name in part}:
            if any(map(str.isalnum, key)):
                entities.setdefault(key, []).append(entity)
    return {key: tuple(found) for key, found in sorted(entities.items()) if len(found) > 1}


@dataclass(frozen=True, eq=False)
class MassSpread:
    """Results of :func:`mass_spread`.

    Attributes
    ----------
    entropy : ndarray of float64, shape (B,)
        Shannon entropy in bits.
    effective_nodes : ndarray of float64, shape (B,)
        2 ** entropy: the number of nodes with equal mass that have this entropy.
    reach : ndarray of int64, shape (B,)
        The smallest number of nodes that hold the given share of the mass.
    """

    entropy: NDArray[np.float64]
    effective_nodes: NDArray[np.float64]
    reach: NDArray[np.int64]


def mass_spread(scores: ArrayLike, *, share: float = 0.9) -> MassSpread:
    """Measure entropy and reach of Personalized PageRank scores.

    Parameters
    ----------
    scores : array_like of float, shape (B, N)
        At least 0, with a positive sum in every row; they need not be normalised.
    share : float, in (0, 1]
        Share of the mass for ``reach``.

    Returns
    -------
    MassSpread

    Raises
    ------
    InputError
        Scores have another shape, are negative or not finite, or a row is all zeros; share is outside (0, 1].

    References
    ----------
    Shannon, Bell Syst. Tech. J. 27 (1948); effective number of order 1: Hill, Ecology 54 (1973).

    Examples
    --------
    >>> from hopfuse.diagnose import mass_spread
    >>> spread = mass_spread([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])
    >>> spread.entropy.tolist(), spread.reach.tolist()
    ([2.0, 0.0], [4, 1])
    """
    check_number(share, "share", above=0, high=1)
    mass = np.asarray(scores, np.float64)
    check_shape(mass.shape, "scores", ("B", "N"))
    check_weights(mass, "scores")
    for row in np.flatnonzero(~mass.any(axis=1))[:1].tolist():
        raise InputError("zero", f"scores[{row}]", "{field} is all zeros; give each row a number above 0")
    mass = mass / mass.sum(axis=1, keepdims=True)
    entropy = -np.sum(mass * np.log2(mass, where=mass > 0, out=np.zeros_like(mass)), axis=1)
    held = np.cumsum(-np.sort(-mass, axis=1), axis=1)
    enough = share * (1 - 1e-12)  # the order of a sum changes its last bits
    reach = np.minimum((held < enough).sum(axis=1) + 1, mass.shape[1])
    # Adding 0.0 turns -0.0, the entropy of a single node, into 0.0.
    return MassSpread(entropy + 0.0, np.exp2(entropy), reach.astype(np.int64))


def hub_nodes(graph: Graph, *, share: float = 0.01) -> NDArray[np.int64]:
    """Return the nodes of highest degree.

    Parameters
    ----------
    graph : Graph
        N nodes.
    share : float, in (0, 1]
        Share of the nodes to return, rounded up.

    Returns
    -------
    ndarray of int64, shape (ceil(share * N),)
        In descending order of summed edge weight, ties by ascending id.

    Raises
    ------
    InputError
        share is outside (0, 1].

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import hub_nodes
    >>> hub_nodes(hf.Graph.from_edges([2, 2, 2, 0], [0, 1, 3, 1]), share=0.5)
    array([2, 0])
    """
    check_number(share, "share", above=0, high=1)
    degree = graph.degree.sum(axis=1)[graph.internal_of]
    return np.argsort(-degree, kind="stable")[: ceil(share * graph.num_nodes)].astype(np.int64)
