"""The paired randomisation test and the bootstrap."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_number, check_whole, counted
from ..errors import InputError


def finite_values(name: str, values: ArrayLike) -> NDArray[np.float64]:
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
    values = finite_values("differences", differences)
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
    distinct, counts = np.unique(finite_values("values", values), return_counts=True)
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
