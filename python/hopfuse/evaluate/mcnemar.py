"""McNemar's exact test for paired yes/no outcomes."""

from __future__ import annotations

from math import comb

from ._checks import check_counts

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
    check_counts(wins, losses)
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
