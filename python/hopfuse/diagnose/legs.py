"""Compare two rankings: overlap, correlation of errors, rank-biased overlap, and losses of pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_number, check_shape, check_some, check_whole
from ..errors import InputError
from ..evaluate.metrics import Values
from ..evaluate.qrels import Qrels
from ..evaluate.runs import gold_ranks
from ..types import Hits


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
    check_length(len(b), "b", len(a), "row of a")
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
    extrapolated to all greater depths, and the shorter list is extrapolated at the rate of agreement at its end
    (equation 32 of the reference, a point estimate between RBO's lower and upper bound). Lists of different lengths can
    be compared, and equal lists have RBO 1.

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
    check_length(len(b), "b", len(a), "row of a")
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
