"""What a number of paired queries can show: power and the smallest detectable difference."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log, log1p, sqrt
from statistics import NormalDist

import numpy as np

from ..errors import InputError
from ._binomial import log_coefficients, pmf

_DEVIATIONS = 8
_HALVINGS = 17  # to 1e-5 of a difference


def mcnemar_power(n: int, won: float, lost: float, *, significance: float = 0.05) -> float:
    """Probability that the exact two-sided McNemar test rejects, for n paired queries.

    The number of discordant queries is Binomial(n, won + lost), of which each is a win with probability
    won / (won + lost). Numbers of discordant queries more than 8 standard deviations from their mean are
    left out, which changes the result by less than 1e-12.

    Parameters
    ----------
    n : int, at least 1
        Queries.
    won, lost : float
        True shares of queries that only the one system, or only the other, answers; at most 1 together.
    significance : float, in (0, 1)

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        An argument outside its range.

    References
    ----------
    Duffy, Biometrics 40 (1984), the exact unconditional power.

    Examples
    --------
    >>> from hopfuse.evaluate import mcnemar_power
    >>> round(mcnemar_power(300, won=0.15, lost=0.05), 3)
    0.974
    """
    if won < 0 or lost < 0 or won + lost > 1:
        raise InputError(f"won is {won} and lost is {lost}; they are shares of the queries, at most 1 together")
    return _power(n, won + lost, significance)(won - lost)


def detectable_difference(n: int, discordant: float, *, power: float = 0.8, significance: float = 0.05) -> float | None:
    """Smallest difference of two shares that the exact McNemar test finds with the given power.

    Parameters
    ----------
    n : int, at least 1
        Paired queries.
    discordant : float, in [0, 1]
        Share of queries that only one of the systems answers; a pilot's, or that of the comparison.
    power, significance : float, in (0, 1)

    Returns
    -------
    float or None
        Share won minus share lost, in (0, discordant], from above to 1e-5; None where not even wins
        alone would be found with that power.

    Raises
    ------
    InputError
        An argument outside its range.

    References
    ----------
    Duffy, Biometrics 40 (1984); for language tasks Card et al., EMNLP (2020).

    Examples
    --------
    >>> from hopfuse.evaluate import detectable_difference
    >>> round(detectable_difference(300, 0.2), 3)
    0.074
    >>> detectable_difference(20, 0.1) is None
    True
    """
    if not 0 <= discordant <= 1:
        raise InputError(f"discordant is {discordant}; it is a share of the queries, in [0, 1]")
    _check_probability("power", power)
    reached = _power(n, discordant, significance)
    if discordant == 0 or reached(discordant) < power:
        return None
    low, high = 0.0, discordant
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) >= power else (middle, high)
    return high


def detectable_mean_difference(n: int, deviation: float, *, power: float = 0.8, significance: float = 0.05) -> float:
    """Smallest mean difference that a two-sided paired test finds with the given power, for large n.

    (z_{1 - significance / 2} + z_power) * deviation / sqrt(n), by the normal approximation.

    Parameters
    ----------
    n : int, at least 1
        Paired queries.
    deviation : float, at least 0
        Standard deviation of the differences per query.
    power, significance : float, in (0, 1)

    Raises
    ------
    InputError
        An argument outside its range.

    References
    ----------
    Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.3.

    Examples
    --------
    >>> from hopfuse.evaluate import detectable_mean_difference
    >>> round(detectable_mean_difference(300, 0.4), 3)
    0.065
    """
    _check(n, significance)
    _check_probability("power", power)
    if not deviation >= 0:
        raise InputError(f"deviation is {deviation}; a standard deviation is at least 0")
    z = NormalDist().inv_cdf
    return (z(1 - significance / 2) + z(power)) * deviation / sqrt(n)


def _power(n: int, discordant: float, significance: float) -> Callable[[float], float]:
    """The power as a function of the difference, for a share of discordant queries."""
    _check(n, significance)
    middle, spread = n * discordant, _DEVIATIONS * sqrt(n * discordant * (1 - discordant)) + 1
    counts = range(max(1, floor(middle - spread)), min(n, ceil(middle + spread)) + 1)
    weights = pmf(n, discordant)
    tails = [(weights[d], _Tail(d, limit)) for d in counts if (limit := _limit(d, significance)) >= 0]

    def reached(difference: float) -> float:
        p = (1 + difference / discordant) / 2 if discordant else 0.5
        return float(sum(weight * (tail(p) + tail(1 - p)) for weight, tail in tails))

    return reached


def _limit(d: int, significance: float) -> int:
    """The most losses (or wins) of d at which the exact test rejects; -1 where it never does."""
    return int(np.searchsorted(2 * np.cumsum(pmf(d, 0.5)), significance, side="right")) - 1


class _Tail:
    """P[Binomial(d, p) <= limit] as a function of p, for limit < d."""

    def __init__(self, d: int, limit: int) -> None:
        self._successes = np.arange(limit + 1)
        self._failures = d - self._successes
        self._logs = log_coefficients(d)[: limit + 1]

    def __call__(self, p: float) -> float:
        if p in (0.0, 1.0):
            return 1.0 - p
        return float(np.exp(self._logs + self._successes * log(p) + self._failures * log1p(-p)).sum())


def _check(n: int, significance: float) -> None:
    if n < 1:
        raise InputError(f"n is {n}; it must be at least 1 query")
    _check_probability("significance", significance)


def _check_probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}; it must lie between 0 and 1")
