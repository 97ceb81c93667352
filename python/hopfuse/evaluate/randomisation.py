"""The paired randomisation test."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._binomial import pmf
from ._checks import check_resamples, finite_values

_ENUMERATED = 1 << 16
_ROUNDING = 1e-9


def randomisation_test(differences: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Two-sided paired randomisation (sign-flip) test of a mean difference of 0.

    Under the null hypothesis the two systems' values of a query could as well be swapped, so each
    difference's sign is a fair coin. p is the probability of a mean at least as far from 0 as the observed
    one. Queries with the same absolute difference are counted together; where there are at most 65,536
    ways to count, all are enumerated and p is exact, else p = (1 + #{as far}) / (1 + resamples), which is
    never below what a test may claim. For differences of -1, 0 and 1 it is McNemar's exact test.

    Parameters
    ----------
    differences : array_like of float, shape (B,)
        Of two runs under one metric, per query.
    resamples : int, at least 1
        Random assignments of signs where they are too many to enumerate.
    seed : int
        Of NumPy's PCG64: the same differences and seed give the same p.

    Returns
    -------
    float
        In (0, 1]; 1.0 where all differences are 0. Means that differ by less than a billionth of the mean
        absolute difference count as equal.

    Raises
    ------
    InputError
        No difference, differences that are not finite, resamples below 1.

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
    check_resamples(resamples)
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
        weights = np.multiply.outer(weights, pmf(int(count), 0.5)).ravel()
    return float(min(1.0, weights[np.abs(sums) >= far].sum()))
