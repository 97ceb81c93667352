"""From a list's raw scores to a scale that lists share: the definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Hits
from .ranking import Ranking

Row = NDArray[np.float64]
TIES = ("strict", "weak", "mean", "rank")
METHODS = ("pit", "min_max", "max", "z_score", "l2", "rank", "none")


def calibrate(hits: Any, method: str = "pit", *, ties: str | None = None) -> Any:
    """Calibrate the scores of each list.

    With s the N valid scores of a list (an empty list stays empty; padding is left alone):

    ========  ==========================================================================
    method    calibrated score of s_i
    ========  ==========================================================================
    pit       percentile rank; by `ties` (SciPy's ``percentileofscore`` kinds over 100):
              strict #{s_j < s_i}/N, weak #{s_j <= s_i}/N, mean (strict + weak)/2,
              rank (#{s_j < s_i} + #{s_j <= s_i} + 1)/(2N)
              (where s_i ties with nothing, rank = weak)
    min_max   (s_i - min)/(max - min); 1 in a list of equal scores
    max       s_i / max|s|; 0 in a list of zeros
    z_score   (s_i - mean)/(population standard deviation); 0 in a list of equal scores
    l2        s_i / sqrt(sum s^2); 0 in a list of zeros
    rank      (N - r + 1)/N, r the position in the list from 1
    none      s_i
    ========  ==========================================================================

    Under ``strict`` the least score of a list becomes 0.

    Parameters
    ----------
    hits : Hits, Ranking, or a sequence of score rows
        Rows may differ in length.
    method : {"pit", "min_max", "max", "z_score", "l2", "rank", "none"}
    ties : {"strict", "weak", "mean", "rank"}, optional
        Only for "pit", where the default is "strict".

    Returns
    -------
    Ranking of the same ids in the same order, or a list of ndarrays of float64 for score rows.

    Raises
    ------
    InputError
        An unknown method or ties, or `ties` given to a method that has none.

    References
    ----------
    PhaseGraph (percentile-rank calibration).

    Examples
    --------
    >>> from hopfuse.reference import calibrate
    >>> calibrate([[0.9, 0.5, 0.5, 0.1]], "pit")
    [array([0.75, 0.25, 0.25, 0.  ])]
    >>> calibrate([[4.0, 2.0, 0.0]], "min_max")
    [array([1. , 0.5, 0. ])]
    """
    rule = calibration_rule(method, ties)
    if not isinstance(hits, (Hits, Ranking)):
        return [_row(rule, np.asarray(row, np.float64)) for row in hits]
    scores = np.full(hits.scores.shape, -np.inf)
    for b, n in enumerate(hits.counts):
        scores[b, :n] = _row(rule, hits.scores[b, :n].astype(np.float64))
    return Ranking(hits.ids.copy(), scores, hits.counts.copy())


def calibration_rule(method: str, ties: str | None) -> Callable[[Row], Row]:
    """The function of one non-empty list that a method and its ties name."""
    if method not in METHODS:
        raise InputError(f"calibration method is {method!r}; allowed: {', '.join(METHODS)}")
    if method != "pit":
        if ties is not None:
            raise InputError(f"ties is {ties!r}, but only calibration 'pit' has ties, not {method!r}; leave it out")
        return _RULES[method]
    if ties is not None and ties not in TIES:
        raise InputError(f"ties is {ties!r}; allowed: {', '.join(TIES)}")
    return lambda s: _pit(s, ties or "strict")


def _row(rule: Callable[[Row], Row], s: Row) -> Row:
    if s.ndim != 1 or not np.isfinite(s).all():
        raise InputError(f"a list of scores is {s}; it must be one-dimensional and finite")
    return rule(s) if s.size else s.copy()


def _pit(s: Row, ties: str) -> Row:
    ascending = np.sort(s)
    below = np.searchsorted(ascending, s, side="left").astype(np.float64)
    up_to = np.searchsorted(ascending, s, side="right").astype(np.float64)
    if ties == "strict":
        return np.asarray(below / s.size)
    if ties == "weak":
        return np.asarray(up_to / s.size)
    if ties == "mean":
        return np.asarray((below + up_to) / (2 * s.size))
    return np.asarray((below + up_to + 1) / (2 * s.size))


def _min_max(s: Row) -> Row:
    low, high = s.min(), s.max()
    return np.ones_like(s) if low == high else (s - low) / (high - low)


def _max(s: Row) -> Row:
    largest = np.abs(s).max()
    return s / largest if largest > 0 else np.zeros_like(s)


def _z_score(s: Row) -> Row:
    return np.zeros_like(s) if s.min() == s.max() else (s - s.mean()) / s.std()


def _l2(s: Row) -> Row:
    unit = _max(s)  # so that no square underflows
    norm = np.sqrt(np.sum(unit * unit))
    return unit / norm if norm > 0 else unit


def _rank(s: Row) -> Row:
    return np.arange(s.size, 0, -1) / s.size


def _none(s: Row) -> Row:
    return s.copy()


_RULES: dict[str, Callable[[Row], Row]] = {
    "min_max": _min_max,
    "max": _max,
    "z_score": _z_score,
    "l2": _l2,
    "rank": _rank,
    "none": _none,
}
