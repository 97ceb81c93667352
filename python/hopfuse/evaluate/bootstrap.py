"""Bootstrap intervals of a mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._checks import check_confidence, check_resamples, finite_values

_DRAWN_AT_ONCE = 1 << 22


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over queries.

    For a paired comparison give the differences per query: queries are then drawn with both systems'
    values, which is the paired bootstrap. A resample is drawn as how often each distinct value occurs in
    it (a multinomial variable), which has the distribution of drawing queries one by one.

    Parameters
    ----------
    values : array_like of float, shape (B,)
        A metric per query, or the difference of two runs per query.
    confidence : float, in (0, 1)
        Nominal two-sided coverage.
    resamples : int, at least 1
    seed : int
        Of NumPy's PCG64: the same values and seed give the same interval.

    Returns
    -------
    (low, high) : tuple of float
        Within the range of the values.

    Raises
    ------
    InputError
        No value, values that are not finite, confidence or resamples outside their range.

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
    check_confidence(confidence)
    check_resamples(resamples)
    distinct, counts = np.unique(finite_values("values", values), return_counts=True)
    means = np.empty(resamples)
    rng = np.random.Generator(np.random.PCG64(seed))
    total, step = int(counts.sum()), max(1, _DRAWN_AT_ONCE // distinct.size)
    for start in range(0, resamples, step):
        part = means[start : start + step]
        part[:] = rng.multinomial(total, counts / total, size=part.size) @ distinct / total
    low, high = np.clip(np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2]), distinct[0], distinct[-1])
    return float(low), float(high)
