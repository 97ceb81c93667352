"""Significance of paired comparisons: resampling, McNemar's test, intervals, odds ratios, power, Holm's correction.

SciPy is imported at the first call; the extra ``eval`` installs it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, nan, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_number, check_whole, counted, import_extra, wrong_value
from ..errors import InputError


def _finite_values(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return values as float64 of shape (B,), B at least 1; refuse NaN and infinity."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            "shape",
            name,
            "{field} has the shape {given}; give one number for each query, at least one",
            given=array.shape,
        )
    wrong = int((~np.isfinite(array)).sum())
    if wrong:
        raise InputError(
            "finite",
            name,
            "{field} has {count} NaN or infinite; leave out queries where a metric is NaN",
            count=counted(wrong, "entry"),
        )
    return array


_ENUMERATED = 1 << 16
_ROUNDING = 1e-9


def randomisation_test(differences: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Return the p-value of the two-sided paired randomisation (sign-flip) test of a mean difference of 0.

    Under the null hypothesis the two systems' values of a query are exchangeable, so each difference has either sign
    with probability 1/2. p is the probability of a mean at least as far from 0 as the observed one. Queries with the
    same absolute difference are grouped: if the number of positive signs per group has at most 65,536 combinations,
    all are enumerated and p is exact, else p = (1 + #{as far}) / (1 + resamples), which keeps the test valid. For
    differences of -1, 0 and 1 it is McNemar's exact test.

    Parameters
    ----------
    differences : array_like of float, shape (B,)
        Differences of two runs under one metric, per query.
    resamples : int, at least 1
        Random assignments of signs if there are too many to enumerate.
    seed : int
        Seed of NumPy's PCG64: the same differences and seed give the same p.

    Returns
    -------
    float
        In (0, 1]; 1.0 if all differences are 0. Means that differ by less than a billionth of the mean
        absolute difference count as equal.

    Raises
    ------
    InputError
        There are no differences, some are not finite, or resamples is below 1.

    References
    ----------
    Fisher, The Design of Experiments (1935); Smucker, Allan and Carterette, CIKM (2007). The estimate:
    Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010), section 3.

    Examples
    --------
    >>> from hopfuse.evaluate import randomisation_test
    >>> randomisation_test([0.5, 0.25, 0.25, 0.0])
    0.25
    """
    check_whole(resamples, "resamples")
    values = _finite_values("differences", differences)
    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    if sizes.size == 0:
        return 1.0
    far = abs(float(values.sum())) - _ROUNDING * float(np.abs(values).sum())
    if prod(int(c) + 1 for c in counts) <= _ENUMERATED:
        return _exact(sizes, counts, far)
    rng = np.random.Generator(np.random.PCG64(seed))
    sums = np.zeros(resamples)
    for size, count in zip(sizes, counts, strict=True):
        sums += size * (2 * rng.binomial(count, 0.5, size=resamples) - count)
    return float((1 + np.count_nonzero(np.abs(sums) >= far)) / (1 + resamples))


def _exact(sizes: NDArray[np.float64], counts: NDArray[np.int64], far: float) -> float:
    sums, weights = np.zeros(1), np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        positive = np.arange(count + 1)
        sums = np.add.outer(sums, size * (2 * positive - count)).ravel()
        weights = np.multiply.outer(weights, _coin_tosses(int(count))).ravel()
    return float(min(1.0, weights[np.abs(sums) >= far].sum()))


_DRAWN_AT_ONCE = 1 << 22


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean over queries.

    For the paired bootstrap of two systems, give the differences per query. A resample is drawn as the number of
    occurrences of each distinct value (a multinomial variable), which is equivalent to drawing queries one by one.

    Parameters
    ----------
    values : array_like of float, shape (B,)
        A metric per query, or the difference of two runs per query.
    confidence : float, in (0, 1)
        Nominal two-sided coverage.
    resamples : int, at least 1
    seed : int
        Seed of NumPy's PCG64: the same values and seed give the same interval.

    Returns
    -------
    (low, high) : tuple of float
        Within the range of the values.

    Raises
    ------
    InputError
        There are no values, some are not finite, or confidence or resamples is out of range.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; for retrieval metrics
    Sakai, SIGIR (2006).

    Examples
    --------
    >>> from hopfuse.evaluate import bootstrap_interval
    >>> low, high = bootstrap_interval([0.5] * 30 + [0.0] * 60 + [-0.5] * 10)
    >>> f"{low:.3f} .. {high:.3f}"
    '0.040 .. 0.155'
    """
    check_number(confidence, "confidence", above=0, below=1)
    check_whole(resamples, "resamples")
    distinct, counts = np.unique(_finite_values("values", values), return_counts=True)
    means = np.empty(resamples)
    rng = np.random.Generator(np.random.PCG64(seed))
    total, step = int(counts.sum()), max(1, _DRAWN_AT_ONCE // distinct.size)
    for start in range(0, resamples, step):
        part = means[start : start + step]
        part[:] = rng.multinomial(total, counts / total, size=part.size) @ distinct / total
    low, high = np.clip(np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2]), distinct[0], distinct[-1])
    return float(low), float(high)


def _coin_tosses(n: int) -> NDArray[np.float64]:
    """Return P[Binomial(n, 1/2) = k] for k = 0 .. n, by the recurrence C(n, k) = C(n, k - 1) (n - k + 1) / k."""
    k = np.arange(1, n + 1)
    logs: NDArray[np.float64] = np.append(0.0, np.cumsum(np.log((n - k + 1) / k)))
    shares: NDArray[np.float64] = np.exp(logs - n * np.log(2.0))
    return shares


_DEVIATIONS = 8
_HALVINGS = 17  # to 1e-5 of a difference


def _stats() -> Any:
    """Return ``scipy.stats``."""
    return import_extra("scipy.stats", "computing intervals and p-values")


# ---- Tests -----------------------------------------------------------------------------------------------------------


def mcnemar_exact(wins: int, losses: int) -> float:
    """Return the p-value of the exact two-sided McNemar test of two systems on the same queries.

    Under the null hypothesis each discordant query is won with probability 1/2: with n = wins + losses,
    p = min(1, 2 * P[Binomial(n, 1/2) <= min(wins, losses)]).

    Parameters
    ----------
    wins, losses : int, at least 0
        Queries that only the first system, or only the second, answers.

    Returns
    -------
    float
        In [0, 1]; 1.0 if no query is discordant.

    Raises
    ------
    InputError
        A negative count.
    MissingExtraError
        SciPy is not installed.

    References
    ----------
    McNemar, Psychometrika 12 (1947); the exact form is the sign test on the discordant pairs.

    Examples
    --------
    >>> from hopfuse.evaluate import mcnemar_exact
    >>> round(mcnemar_exact(9, 1), 9)
    0.021484375
    """
    _check_counts(wins, losses)
    n = int(wins) + int(losses)
    return float(_stats().binomtest(int(wins), n).pvalue) if n else 1.0


def wilson_interval(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion.

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
    MissingExtraError
        SciPy is not installed.

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
    check_whole(n, "n")
    check_whole(successes, "successes", n, least=0)
    check_number(confidence, "confidence", above=0, below=1)
    low, high = _stats().binomtest(int(successes), int(n)).proportion_ci(confidence, method="wilson")
    return (0.0 if successes == 0 else float(low)), (1.0 if successes == n else float(high))


def discordant_odds_ratio(wins: int, losses: int, *, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the odds ratio of wins to losses of two systems on the same queries, with its exact interval.

    Queries that both or neither answer do not count: the conditional maximum-likelihood estimate is wins / losses.
    Among the discordant queries the number of wins is binomial with p = ratio / (1 + ratio), so the Clopper-Pearson
    interval of p gives that of the ratio.

    Parameters
    ----------
    wins, losses : int, at least 0
        Queries that only the first system, or only the second, answers.
    confidence : float, in (0, 1)
        Minimum two-sided coverage.

    Returns
    -------
    (ratio, low, high) : tuple of float
        The ratio is inf if losses is 0; (nan, 0.0, inf) if no query is discordant.

    Raises
    ------
    InputError
        A negative count, confidence outside (0, 1).
    MissingExtraError
        SciPy is not installed.

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
    _check_counts(wins, losses)
    check_number(confidence, "confidence", above=0, below=1)
    if wins + losses == 0:
        return nan, 0.0, inf
    low, high = _stats().binomtest(int(wins), int(wins + losses)).proportion_ci(confidence, method="exact")
    return _odds(wins, losses), _odds(low, 1 - low), _odds(high, 1 - high)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values corrected for multiple comparisons by Holm's method.

    Rejecting the hypotheses with corrected p-values up to 5 % makes at least one false rejection with a probability of
    at most 5 %, without assuming independence. With the m p-values in ascending order, the i-th is multiplied by
    m - i + 1, raised to at least the one before it, and limited to 1.

    Parameters
    ----------
    p_values : array_like of float, shape (m,)
        In [0, 1].

    Returns
    -------
    ndarray of float64, shape (m,)
        In the order given.

    Raises
    ------
    InputError
        Another shape, or a value outside [0, 1].

    References
    ----------
    Holm, Scand. J. Stat. 6 (1979).

    Examples
    --------
    >>> from hopfuse.evaluate import holm
    >>> holm([0.01, 0.04, 0.03]).round(9)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise wrong_value(p_values, "p_values", "a list of numbers in [0, 1]", "range")
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return corrected


def mcnemar_power(n: int, won: float, lost: float, *, significance: float = 0.05) -> float:
    """Return the probability that the exact two-sided McNemar test rejects, for n paired queries.

    The number of discordant queries is Binomial(n, won + lost), and each is a win with probability
    won / (won + lost). Numbers of discordant queries more than 8 standard deviations from their mean are
    ignored, which changes the result by less than 1e-12.

    Parameters
    ----------
    n : int, at least 1
        Queries.
    won, lost : float
        True shares of queries that only the first system, or only the second, answers; their sum is at most 1.
    significance : float, in (0, 1)

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        An argument outside its range.
    MissingExtraError
        SciPy is not installed.

    References
    ----------
    Duffy, Biometrics 40 (1984), the exact unconditional power.

    Examples
    --------
    >>> from hopfuse.evaluate import mcnemar_power
    >>> round(mcnemar_power(300, won=0.15, lost=0.05), 3)
    0.974
    """
    for name, share in (("won", won), ("lost", lost)):
        check_number(share, name, low=0, high=1)
    if won + lost > 1:
        raise InputError(
            "range",
            "lost",
            "{field} is {given} beside {@won}{won}; they are shares of the queries, with a sum of at most 1",
            given=lost,
            won=won,
        )
    return _power(n, won + lost, significance)(won - lost)


def detectable_difference(n: int, discordant: float, *, power: float = 0.8, significance: float = 0.05) -> float | None:
    """Return the smallest difference of two shares that the exact McNemar test detects with the given power.

    Parameters
    ----------
    n : int, at least 1
        Paired queries.
    discordant : float, in [0, 1]
        Share of queries that only one of the systems answers, from a pilot study or the comparison itself.
    power, significance : float, in (0, 1)

    Returns
    -------
    float or None
        Share won minus share lost, in (0, discordant], at most 1e-5 too large; None if the power is not reached even
        if every discordant query is won.

    Raises
    ------
    InputError
        An argument outside its range.
    MissingExtraError
        SciPy is not installed.

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
    check_number(discordant, "discordant", low=0, high=1)
    check_number(power, "power", above=0, below=1)
    power_of = _power(n, discordant, significance)
    if discordant == 0 or power_of(discordant) < power:
        return None
    low, high = 0.0, discordant
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(middle) >= power else (middle, high)
    return high


def detectable_mean_difference(n: int, deviation: float, *, power: float = 0.8, significance: float = 0.05) -> float:
    """Return the smallest mean difference that a two-sided paired test detects with the given power.

    By the normal approximation for large n, it is (z_{1 - significance / 2} + z_power) * deviation / sqrt(n).

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
    MissingExtraError
        SciPy is not installed.

    References
    ----------
    Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.3.

    Examples
    --------
    >>> from hopfuse.evaluate import detectable_mean_difference
    >>> round(detectable_mean_difference(300, 0.4), 3)
    0.065
    """
    _check_test(n, significance)
    check_number(power, "power", above=0, below=1)
    check_number(deviation, "deviation", low=0)
    z = _stats().norm.ppf([1 - significance / 2, power])
    return float(z.sum()) * deviation / sqrt(n)


def queries_needed(difference: float, deviation: float, *, power: float = 0.8, significance: float = 0.05) -> int:
    """Return how many queries a two-sided paired test needs to detect a mean difference with the given power.

    The inverse of :func:`detectable_mean_difference`: ((z_{1 - significance / 2} + z_power) * deviation / difference)²,
    rounded up.

    Parameters
    ----------
    difference : float, above 0
        Mean difference per query.
    deviation : float, at least 0
        Standard deviation of the differences per query.
    power, significance : float, in (0, 1)

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    InputError
        An argument outside its range.
    MissingExtraError
        SciPy is not installed.

    References
    ----------
    Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.4.

    Examples
    --------
    >>> from hopfuse.evaluate import queries_needed
    >>> queries_needed(0.065, 0.4)
    298
    """
    check_number(difference, "difference", above=0)
    return max(
        1, ceil((detectable_mean_difference(1, deviation, power=power, significance=significance) / difference) ** 2)
    )


def _power(n: int, discordant: float, significance: float) -> Callable[[float], float]:
    """Return the power as a function of the difference, for a share of discordant queries."""
    _check_test(n, significance)
    binom = _stats().binom
    middle, spread = n * discordant, _DEVIATIONS * sqrt(n * discordant * (1 - discordant)) + 1
    d = np.arange(max(1, floor(middle - spread)), min(n, ceil(middle + spread)) + 1)
    # The largest count of losses (or wins) of d at which the test rejects; ppf returns the first at or above the level.
    limit = binom.ppf(significance / 2, d, 0.5)
    limit = limit - (2 * binom.cdf(limit, d, 0.5) > significance)
    rejects = limit >= 0
    d, limit = d[rejects], limit[rejects]
    weight = binom.pmf(d, n, discordant)

    def power_of(difference: float) -> float:
        p = (1 + difference / discordant) / 2 if discordant else 0.5
        return float((weight * (binom.cdf(limit, d, p) + binom.cdf(limit, d, 1 - p))).sum())

    return power_of


def _odds(of: float, against: float) -> float:
    return float(of / against) if against else inf


def _check_counts(wins: int, losses: int) -> None:
    check_whole(wins, "wins", least=0)
    check_whole(losses, "losses", least=0)


def _check_test(n: int, significance: float) -> None:
    check_whole(n, "n")
    check_number(significance, "significance", above=0, below=1)
