"""The odds ratio of discordant pairs."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from ._binomial import pmf
from ._checks import check_confidence, check_counts

_HALVINGS = 60


def discordant_odds_ratio(wins: int, losses: int, *, confidence: float = 0.95) -> tuple[float, float, float]:
    """Odds ratio of winning, of two systems judged on the same queries, with an exact interval.

    Queries that both or neither answer say nothing of it: the conditional maximum-likelihood estimate
    is wins / losses. Among the discordant queries the number of wins is binomial with
    p = ratio / (1 + ratio), so the Clopper-Pearson interval of p gives that of the ratio.

    Parameters
    ----------
    wins, losses : int, at least 0
        Queries that only the one system, or only the other, answers.
    confidence : float, in (0, 1)
        Two-sided coverage, at least this.

    Returns
    -------
    (ratio, low, high) : tuple of float
        inf where nothing is lost; (nan, 0.0, inf) where no query is discordant.

    Raises
    ------
    InputError
        A negative count, confidence outside (0, 1).

    References
    ----------
    Breslow and Day, Statistical Methods in Cancer Research 1 (1980), section 5.2; Clopper and Pearson,
    Biometrika 26 (1934).

    Examples
    --------
    >>> from hopfuse.evaluate import discordant_odds_ratio
    >>> ratio, low, high = discordant_odds_ratio(20, 8)
    >>> f"{ratio} ({low:.2f} .. {high:.2f})"
    '2.5 (1.05 .. 6.56)'
    """
    check_counts(wins, losses)
    check_confidence(confidence)
    n, tail = wins + losses, (1 - confidence) / 2
    low = 0.0 if wins == 0 else _root(lambda p: float(pmf(n, p)[wins:].sum()) < tail)
    high = 1.0 if losses == 0 else _root(lambda p: float(pmf(n, p)[: wins + 1].sum()) > tail)
    return _odds(wins, losses), _odds(low, 1 - low), _odds(high, 1 - high)


def _odds(of: float, against: float) -> float:
    if against:
        return of / against
    return inf if of else nan


def _root(below: Callable[[float], bool]) -> float:
    """Where in (0, 1) a condition that holds at the left ceases to hold."""
    left, right = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        left, right = (middle, right) if below(middle) else (left, middle)
    return (left + right) / 2
