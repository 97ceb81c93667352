"""Exact tests and intervals for paired yes/no outcomes."""

from __future__ import annotations

from math import comb, sqrt
from statistics import NormalDist

from ..errors import InputError

_GUARD_BITS = 128


def mcnemar_exact(wins: int, losses: int) -> float:
    """Exact two-sided McNemar p-value for two systems judged on the same queries.

    Under the null hypothesis each discordant query is a fair coin, so with n = wins + losses and
    m = min(wins, losses), p = min(1, 2 * P[Binomial(n, 1/2) <= m]). The sum is taken in integers
    with 128 guard bits and rounded once, so the result is right to the last bit or its neighbour for
    every n; values below the smallest float64 are 0. Time grows with the size of C(n, m): a tenth of
    a second at n = 100,000.

    Parameters
    ----------
    wins, losses : int, at least 0
        Queries that only the one system, or only the other, answers.

    Returns
    -------
    float
        In [0, 1]; 1.0 where there is no discordant query.

    Raises
    ------
    InputError
        A negative count.

    References
    ----------
    McNemar, Psychometrika 12 (1947); the exact form is the sign test on the discordant pairs.

    Examples
    --------
    >>> from hopfuse.evaluate import mcnemar_exact
    >>> mcnemar_exact(9, 1)
    0.021484375
    """
    if wins < 0 or losses < 0:
        raise InputError(f"wins is {wins} and losses is {losses}; both are counts, at least 0")
    n, m = int(wins) + int(losses), int(min(wins, losses))
    if 2 * m >= n - 1:
        return 1.0
    # P[X <= m] = C(n, m) / 2^n * (1 + m/(n-m+1) * (1 + (m-1)/(n-m+2) * ...)), the bracket in fixed point
    term = total = 1 << _GUARD_BITS
    for i in range(m, 0, -1):
        term = term * i // (n - i + 1)
        total += term
        if term == 0:
            break
    return comb(n, m) * total / (1 << (n - 1 + _GUARD_BITS))


def wilson_interval(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion.

    Parameters
    ----------
    successes : int, 0 .. n
    n : int, at least 1
        Trials.
    confidence : float, in (0, 1)
        Nominal two-sided coverage.

    Returns
    -------
    (low, high) : tuple of float
        Within [0, 1]; low is exactly 0 at ``successes=0``, high exactly 1 at ``successes=n``.

    Raises
    ------
    InputError
        n below 1, successes outside 0 .. n, confidence outside (0, 1).

    References
    ----------
    Wilson, J. Am. Stat. Assoc. 22 (1927).

    Examples
    --------
    >>> from hopfuse.evaluate import wilson_interval
    >>> low, high = wilson_interval(8, 10)
    >>> f"{low:.3f} .. {high:.3f}"
    '0.490 .. 0.943'
    """
    if n < 1 or not 0 <= successes <= n:
        raise InputError(f"{successes} successes of n = {n}: n is at least 1, successes are 0 .. n")
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; it must lie between 0 and 1, e.g. 0.95")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high
