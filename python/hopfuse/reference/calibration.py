"""Float64 oracle of calibrate."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_number, check_shape
from ..errors import InputError
from ..types import Hits
from .ranking import Ranking

__all__ = ["calibrate"]

Row = NDArray[np.float64]
TIES = ("strict", "weak", "mean", "rank")
METHODS = (
    "pit",
    "min_max",
    "max",
    "z_score",
    "l2",
    "rank",
    "theoretical_min_max",
    "three_sigma",
    "sum",
    "gaussian",
    "softmax",
    "none",
)
#: The method that has each option.
_OF = {"ties": "pit", "lower": "theoretical_min_max", "upper": "theoretical_min_max", "temperature": "softmax"}


def calibrate(
    hits: Any,
    method: str = "pit",
    *,
    ties: str | None = None,
    single: float | None = None,
    equal: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
    temperature: float | None = None,
) -> Any:
    """Calibrate the scores of each list.

    With s the N valid scores of a list (empty lists and padding are unchanged):

    ===================  ===============================================================================
    method               calibrated score of s_i
    ===================  ===============================================================================
    pit                  percentile rank; by `ties` (SciPy's ``percentileofscore`` kinds over 100):
                         strict #{s_j < s_i}/N, weak #{s_j <= s_i}/N, mean (strict + weak)/2,
                         rank (#{s_j < s_i} + #{s_j <= s_i} + 1)/(2N)
                         (if s_i has no ties, rank = weak)
    min_max              (s_i - min)/(max - min); 1 in a list of equal scores
    max                  s_i / max|s|; 0 in a list of zeros
    z_score              (s_i - mean)/(population standard deviation); 0 in a list of equal scores
    l2                   s_i / sqrt(sum s^2); 0 in a list of zeros
    rank                 (N - r + 1)/N, r the position in the list from 1
    theoretical_min_max  0 if s_i <= lower, else 1 if s_i >= upper, else (s_i - lower)/(upper - lower); `lower` and
                         `upper` are the scorer's limits, and `upper` is by default the list's max
    three_sigma          1/2 + (s_i - mean)/(6 d) clipped to [0, 1], d the sample standard deviation (N - 1);
                         1/2 in a list of equal scores
    sum                  (s_i - min)/sum(s - min); 1/N in a list of equal scores
    gaussian             the standard normal quantile of (#{s_j < s_i} + #{s_j <= s_i})/(2N);
                         0 in a list of equal scores
    softmax              exp(s_i/T)/sum exp(s/T), T the `temperature`
    none                 s_i
    ===================  ===============================================================================

    With ``strict`` the lowest score of a list becomes 0. `single` and `equal`, if given, are the calibrated score of a
    list with one hit, and of a list with two or more equal scores.

    Parameters
    ----------
    hits : Hits, Ranking, or a sequence of score rows
        Rows may differ in length.
    method : str
        A method of the table.
    ties : {"strict", "weak", "mean", "rank"}, optional
        Only for "pit", where the default is "strict".
    single, equal : float, optional
    lower, upper : float, optional
        Only for "theoretical_min_max", which needs `lower`; lower < upper.
    temperature : float > 0, optional
        Only for "softmax", where the default is 1.

    Returns
    -------
    Ranking of the same ids in the same order, or a list of ndarrays of float64 for score rows.

    Raises
    ------
    InputError
        An unknown method or ties, an option that the method does not have, or a value out of range.

    References
    ----------
    - pit: PhaseGraph (percentile-rank calibration).
    - theoretical_min_max: TM2C2 of Bruch, Gai & Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS
      2023.
    - three_sigma: distribution-based score fusion.
    - sum: Montague & Aslam, "Relevance Score Normalization for Metasearch", CIKM 2001.
    - gaussian: the monotone rearrangement of a list's ranks is the optimal transport to a normal distribution on the
      line.

    Examples
    --------
    >>> from hopfuse.reference import calibrate
    >>> calibrate([[0.9, 0.5, 0.5, 0.1]], "pit")
    [array([0.75, 0.25, 0.25, 0.  ])]
    >>> calibrate([[4.0, 2.0, 0.0]], "min_max")
    [array([1. , 0.5, 0. ])]
    >>> calibrate([[4.0, 2.0], [3.0]], "theoretical_min_max", lower=0.0, upper=4.0, single=0.5)
    [array([1. , 0.5]), array([0.5])]
    """
    options = {"ties": ties, "lower": lower, "upper": upper, "temperature": temperature}
    method_rule = calibration_rule(method, {name: value for name, value in options.items() if value is not None})

    def rule(s: Row) -> Row:
        if s.min() == s.max():
            stated = single if s.size == 1 else equal
            if stated is not None:
                return np.full(s.size, float(stated))
        return method_rule(s)

    if not isinstance(hits, (Hits, Ranking)):
        return [_row(rule, np.asarray(row, np.float64)) for row in hits]
    scores = np.full(hits.scores.shape, -np.inf)
    for b, n in enumerate(hits.counts):
        scores[b, :n] = _row(rule, hits.scores[b, :n].astype(np.float64))
    return Ranking(hits.ids.copy(), scores, hits.counts.copy())


def calibration_rule(method: str, options: dict[str, Any]) -> Callable[[Row], Row]:
    """Return the calibration of one non-empty list, as a function, for a method and its options."""
    check_choice(method, "calibration", METHODS)
    for name in options:
        if _OF[name] != method:
            raise InputError(
                "unused",
                name,
                "{field} is given, but calibration {method!r} has no such option; {of!r} has",
                method=method,
                of=_OF[name],
            )
    if method == "pit":
        ties = check_choice(options.get("ties", "strict"), "ties", TIES)
        return lambda s: _pit(s, ties)
    if method == "theoretical_min_max":
        lower, upper = options.get("lower"), options.get("upper")
        if lower is None or (upper is not None and not lower < upper):
            raise InputError(
                "order",
                "lower",
                "{field} is {given!r}; it must be given and below upper={upper!r}",
                given=lower,
                upper=upper,
            )
        return lambda s: _theoretical_min_max(s, lower, s.max() if upper is None else upper)
    if method == "softmax":
        temperature = check_number(options.get("temperature", 1.0), "temperature", above=0)
        return lambda s: _softmax(s, temperature)
    return _RULES[method]


def _row(rule: Callable[[Row], Row], s: Row) -> Row:
    check_shape(s.shape, "scores", ("n",))
    if not np.isfinite(s).all():
        raise InputError("finite", "scores", "{field} are {given}; they must be finite", given=s)
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


def _theoretical_min_max(s: Row, lower: float, upper: float) -> Row:
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (s - lower) / (upper - lower)
    return np.where(s <= lower, 0.0, np.where(s >= upper, 1.0, inside))


def _three_sigma(s: Row) -> Row:
    if s.min() == s.max():
        return np.full(s.size, 0.5)
    return np.asarray(np.clip(0.5 + (s - s.mean()) / (6.0 * s.std(ddof=1)), 0.0, 1.0))


def _sum(s: Row) -> Row:
    if s.min() == s.max():
        return np.full(s.size, 1.0 / s.size)
    scaled = _min_max(s)  # so that no sum overflows
    return np.asarray(scaled / scaled.sum())


def _gaussian(s: Row) -> Row:
    return np.array([NormalDist().inv_cdf(p) for p in _pit(s, "mean").tolist()])


def _softmax(s: Row, temperature: float) -> Row:
    mass = np.exp((s - s.max()) / temperature)
    return np.asarray(mass / mass.sum())


def _none(s: Row) -> Row:
    return s.copy()


_RULES: dict[str, Callable[[Row], Row]] = {
    "min_max": _min_max,
    "max": _max,
    "z_score": _z_score,
    "l2": _l2,
    "rank": _rank,
    "three_sigma": _three_sigma,
    "sum": _sum,
    "gaussian": _gaussian,
    "none": _none,
}
