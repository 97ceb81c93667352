"""Wilson's interval of a proportion."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from ..errors import InputError
from ._checks import check_confidence


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
    check_confidence(confidence)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high
