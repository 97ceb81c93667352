"""Binomial probabilities in float64."""

from __future__ import annotations

from functools import lru_cache
from math import lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray


def log_coefficients(n: int) -> NDArray[np.float64]:
    """log C(n, k) for k = 0 .. n."""
    logs = _log_factorials(n.bit_length())[: n + 1]
    made: NDArray[np.float64] = logs[n] - logs - logs[::-1]
    return made


@lru_cache(maxsize=32)
def _log_factorials(bits: int) -> NDArray[np.float64]:
    """log k! for all k of so many bits."""
    return np.array([lgamma(k + 1) for k in range(1 << bits)])


def pmf(n: int, p: float) -> NDArray[np.float64]:
    """P[Binomial(n, p) = k] for k = 0 .. n."""
    if p in (0.0, 1.0):
        certain = np.zeros(n + 1)
        certain[n if p else 0] = 1
        return certain
    k = np.arange(n + 1)
    made: NDArray[np.float64] = np.exp(log_coefficients(n) + k * log(p) + (n - k) * log1p(-p))
    return made
