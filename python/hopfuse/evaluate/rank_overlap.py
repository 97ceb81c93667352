"""How alike two rankings are, the top weighing most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Hits
from .metrics import Values


def rank_biased_overlap(a: Hits, b: Hits, *, p: float = 0.9) -> Values:
    """Extrapolated rank-biased overlap of the lists of each query.

    The share of passages that two lists have in common down to depth d, averaged over all depths with the weight
    (1 - p) p^(d - 1). Lists end, and the lists of this measure do not: below the longer one the agreement found is
    taken to go on, and below the shorter one its own (equation 32 of the source, a point estimate between its lower
    and its upper bound). So lists of different lengths compare, and equal ones have 1.

    Parameters
    ----------
    a, b : Hits
        B rows each, of any width; all valid hits of a row count.
    p : float, in (0, 1)
        How deep a reader goes: after each passage on to the next with this probability. The first ten passages have
        86 % of the weight at 0.9, and all but 0.02 % at 0.5.

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1], the same with a and b exchanged; 0 where only one list is empty, NaN where both are.

    Raises
    ------
    InputError
        Another number of rows, p outside (0, 1).

    References
    ----------
    Webber, Moffat and Zobel, ACM TOIS 28 (2010).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import rank_biased_overlap
    >>> a, b = hf.Hits([[1, 2, 3]], [[3.0, 2.0, 1.0]]), hf.Hits([[2, 1, 3]], [[3.0, 2.0, 1.0]])
    >>> rank_biased_overlap(a, b, p=0.5)
    array([0.5])
    """
    if len(a) != len(b):
        raise InputError(f"a has {len(a)} rows and b {len(b)}; give both lists of the same queries")
    check_persistence(p)
    rows = ([[passage for passage, _ in hits.row(row)] for hits in (a, b)] for row in range(len(a)))
    return np.fromiter((_extrapolated(lists, p) for lists in rows), np.float64, len(a))


def check_persistence(p: float) -> None:
    """Refuse a probability of reading on that is not strictly between 0 and 1."""
    if not 0 < p < 1:
        raise InputError(f"p is {p}; it must lie between 0 and 1, e.g. 0.9")


def _extrapolated(lists: list[list[int]], p: float) -> float:
    short, long = sorted(lists, key=len)
    s, length = len(short), len(long)
    if s == 0:
        return 0.0 if length else float("nan")
    shared = _shared(short, long)
    depth = np.arange(1, length + 1)
    # What the shorter list would share below its end, at the rate of its end.
    continued = shared[s - 1] / s * np.maximum(depth - s, 0)
    agreement = (shared + continued) / depth
    value = (1 - p) * (agreement * p ** (depth - 1.0)).sum() + agreement[-1] * p**length
    return float(min(value, 1.0))


def _shared(short: list[int], long: list[int]) -> NDArray[np.int64]:
    """How many passages both lists have down to each depth of the longer one."""
    place = {passage: at for at, passage in enumerate(short)}
    enters = [max(at, place[passage]) for at, passage in enumerate(long) if passage in place]
    return np.cumsum(np.bincount(np.array(enters, np.int64), minlength=len(long)))
