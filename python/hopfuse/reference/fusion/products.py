"""Methods that multiply: log-linear pooling, power mean, Plackett-Luce."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from . import boltzmann
from .method import NONNEGATIVE, FusionMethod, ScoredList, Scores, is_number, mixture_weights, values_of


def log_linear(lists: Sequence[ScoredList], weights: Any, *, temperature: Any, epsilon: float) -> Scores:
    """Return the product of (P_l + epsilon)^w_l, with the Boltzmann probabilities P_l of list l; see :mod:`.boltzmann`.

    For a document that a list lacks, P_l = 0.

    References
    ----------
    PhaseGraph's comparison set: P_v^alpha P_g^(1 - alpha).

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4, 2]), np.array([0.6, 0.2])), ScoredList(np.array([2, 4]), np.array([0.6, 0.2]))]
    >>> scores = log_linear(lists, [0.5, 0.5], temperature=1.0, epsilon=1e-9)
    >>> round(scores[4], 6), round(scores[2], 6)  # the root of 0.75 * 0.25
    (0.433013, 0.433013)
    """
    values = [boltzmann.distribution(one.scores, temperature) for one in lists]
    return _weighted_product(lists, values, weights, epsilon)


def power_mean(lists: Sequence[ScoredList], weights: Any, *, p: float, epsilon: float) -> Scores:
    """Return (sum w_l u_l^p / sum w_l)^(1/p), or exp(sum w_l ln u_l / sum w_l) if p = 0, with u_l = c_l + epsilon.

    For a document that a list lacks, c_l = 0. If all weights are 0, the score is 0.

    References
    ----------
    PhaseGraph's comparison set: (alpha u^p + (1 - alpha) v^p)^(1/p).

    Examples
    --------
    >>> import numpy as np
    >>> lists = [ScoredList(np.array([4]), np.array([1.0])), ScoredList(np.array([4]), np.array([0.25]))]
    >>> round(power_mean(lists, [0.5, 0.5], p=0.5, epsilon=1e-9)[4], 6)
    0.5625
    """
    used = [(number, float(w)) for number, w in enumerate(weights) if w > 0]
    total = math.fsum(w for _, w in used)
    scores = {}
    for document, own in values_of([one.ids for one in lists], [_nonnegative(one.scores) for one in lists]).items():
        logs = [(w, math.log(own.get(number, 0.0) + epsilon)) for number, w in used]
        if not used:
            scores[document] = 0.0
        elif p == 0:
            scores[document] = math.exp(math.fsum(w * log for w, log in logs) / total)
        else:
            most = max(p * log for _, log in logs)
            mean = math.fsum(w * math.exp(p * log - most) for w, log in logs) / total
            scores[document] = math.exp((most + math.log(mean)) / p)
    return scores


def plackett_luce(lists: Sequence[ScoredList], weights: Any, *, steps: int, epsilon: float) -> Scores:
    """Return the product of (s_l + epsilon)^w_l, with the Plackett-Luce strengths s_l of list l; see :func:`strengths`.

    For a document that a list lacks, s_l = 0.

    References
    ----------
    PhaseGraph's comparison set: pi_v^alpha pi_g^(1 - alpha).

    Examples
    --------
    >>> import numpy as np
    >>> scores = plackett_luce([ScoredList(np.array([7, 4, 2]), np.zeros(3))], [1.0], steps=1, epsilon=1e-9)
    >>> {document: round(score, 6) for document, score in scores.items()}
    {7: 0.714286, 4: 0.285714, 2: 0.0}
    """
    values = [strengths(one.ids.size, steps) for one in lists]
    return _weighted_product(lists, values, weights, epsilon)


def strengths(n: int, steps: int) -> NDArray[np.float64]:
    """Return the Plackett-Luce strengths of one ranking of n items, with sum 1, by Hunter's MM algorithm.

    It starts with equal strengths. A step sets the strength of the item of rank r to
    [r < n] / sum_(t <= min(r, n - 1)) 1/S_t, where S_t is the sum of the strengths of rank t and below (Hunter, "MM
    Algorithms for Generalized Bradley-Terry Models", Annals of Statistics 32, 2004, eq. 30, for one ranking).

    Examples
    --------
    >>> strengths(3, 1).round(6)
    array([0.714286, 0.285714, 0.      ])
    """
    s = np.full(n, 1.0 / max(n, 1))
    for _ in range(steps if n > 1 else 0):
        remaining = np.cumsum(s[::-1])[::-1]
        new = np.zeros(n)
        new[:-1] = 1.0 / np.cumsum(1.0 / remaining[:-1])
        s = new / new.sum()
    return s


def _nonnegative(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if (scores < 0).any():
        raise InputError(
            "range",
            None,
            "calibrated score {min} is negative, but a power needs scores of at least 0",
            min=scores.min(),
        )
    return scores


def _weighted_product(
    lists: Sequence[ScoredList], values: Sequence[NDArray[np.float64]], weights: Any, epsilon: float
) -> Scores:
    scores = {}
    for document, own in values_of([one.ids for one in lists], values).items():
        logs = [math.log(own.get(number, 0.0) + epsilon) for number in range(len(lists))]
        scores[document] = math.exp(math.fsum(float(w) * log for w, log in zip(weights, logs, strict=True)))
    return scores


def check_log_linear(num_lists: int, *, temperature: Any, epsilon: Any) -> None:
    """Check the temperature as in boltzmann, and that epsilon is above 0."""
    boltzmann.check(num_lists, temperature=temperature)
    _check_epsilon(epsilon)


def check_power_mean(num_lists: int, *, p: Any, epsilon: Any) -> None:
    """Check that p is 0 or 0.05 <= |p| <= 100, and that epsilon is above 0."""
    if not is_number(p, -100, 100) or 0 < abs(p) < 0.05:
        raise InputError(
            "UNSORTED", "p", "{field} is {given!r}; it must be 0, or a number with 0.05 <= |p| <= 100", given=p
        )
    _check_epsilon(epsilon)


def check_plackett_luce(num_lists: int, *, steps: Any, epsilon: Any) -> None:
    """Check that steps is a whole number from 1 to 100, and that epsilon is above 0."""
    if not is_number(steps, 1, 100) or int(steps) != steps:
        raise InputError("range", "steps", "{field} is {given!r}; it must be a whole number from 1 to 100", given=steps)
    _check_epsilon(epsilon)


def _check_epsilon(epsilon: Any) -> None:
    if not is_number(epsilon, 0, float(np.finfo(np.float32).max)) or epsilon == 0:
        raise InputError("range", "epsilon", "{field} is {given!r}; it must be a finite number above 0", given=epsilon)


LOG_LINEAR = FusionMethod(
    "log_linear",
    log_linear,
    NONNEGATIVE,
    mixture_weights,
    {"temperature": "auto", "epsilon": 1e-9},
    check_log_linear,
)
POWER_MEAN = FusionMethod(
    "power_mean", power_mean, NONNEGATIVE, mixture_weights, {"p": 0.5, "epsilon": 1e-9}, check_power_mean
)
PLACKETT_LUCE = FusionMethod(
    "plackett_luce", plackett_luce, (), mixture_weights, {"steps": 3, "epsilon": 1e-9}, check_plackett_luce
)
