"""Boltzmann fusion (PhaseGraph)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .method import NONNEGATIVE, FusionMethod, ScoredList, Scores, is_number, mixture_weights, weighted_sum

EPSILON = 1e-9


def score(lists: Sequence[ScoredList], weights: Any, *, temperature: Any, wasserstein: float) -> Scores:
    """Return the sum of w_l P_l, where P_l is a Boltzmann distribution over the documents of list l.

    With the calibrated scores p >= 0 of a list: energies E = -ln(p + 1e-9), temperature T = (2/3) mean(E) unless given,
    P = softmax(-E / T). If that T <= 0 (every p is 1, or exceeds 1 with calibration "none"), P is uniform, as it is for
    tied lists and singletons.

    Parameters
    ----------
    lists : L lists
        A list that lacks a document adds 0.
    weights : (L,)
        They need not sum to 1.
    temperature : "auto" or float > 0
    wasserstein : float >= 0
        Every T is multiplied by 1 + wasserstein W, with W the :func:`mean_distance` of the lists' calibrated scores.

    References
    ----------
    PhaseGraph; its comparison set has T = T0 (1 + gamma W1).

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference.fusion.method import ScoredList
    >>> halves = ScoredList(np.array([4, 2]), np.array([0.5, 0.5]))
    >>> score([halves], [1.0], temperature="auto", wasserstein=0.0)
    {4: 0.5, 2: 0.5}
    """
    factor = 1.0 + wasserstein * mean_distance([one.scores for one in lists]) if wasserstein else 1.0
    values = [distribution(one.scores, temperature, factor) for one in lists]
    return weighted_sum([one.ids for one in lists], values, weights)


def mean_distance(samples: Sequence[NDArray[np.float64]]) -> float:
    """Return the mean :func:`distance` over all pairs of non-empty samples; 0 without pairs.

    Examples
    --------
    >>> import numpy as np
    >>> mean_distance([np.array([1.0]), np.array([]), np.array([0.5, 0.0])])
    0.75
    """
    pairs = list(combinations([sample for sample in samples if sample.size], 2))
    return math.fsum(distance(a, b) for a, b in pairs) / len(pairs) if pairs else 0.0


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the Wasserstein-1 distance of two samples in descending order: the area between their quantile functions.

    References
    ----------
    Vallender, "Calculation of the Wasserstein Distance between Probability Distributions on the Line", Theory of
    Probability and Its Applications 18, 1974.

    Examples
    --------
    >>> import numpy as np
    >>> distance(np.array([1.0]), np.array([0.5, 0.0]))
    0.75
    """
    steps = np.union1d(np.arange(a.size) * b.size, np.arange(b.size) * a.size)  # in units of 1/(n m)
    widths = np.diff(steps, append=a.size * b.size)
    apart = np.abs(a[steps // b.size] - b[steps // a.size])
    return float(np.sum(widths * apart) / (a.size * b.size))


def distribution(p: NDArray[np.float64], temperature: Any, factor: float = 1.0) -> NDArray[np.float64]:
    """Return P = softmax(-E / T) of one list of calibrated scores; T is multiplied by `factor`.

    Examples
    --------
    With T fixed at 1, P is proportional to p + 1e-9:

    >>> import numpy as np
    >>> distribution(np.array([0.6, 0.2]), 1.0).round(6)
    array([0.75, 0.25])
    """
    if p.size == 0:
        return p
    if (p < 0).any():
        raise InputError(
            "range",
            None,
            "calibrated score {min} is negative, but -ln(p) needs p >= 0; use calibration 'pit', "
            "'min_max' or 'rank', which give no negative values",
            min=p.min(),
        )
    energy = -np.log(p + EPSILON)
    t = (auto_temperature(energy) if temperature == "auto" else float(temperature)) * factor
    if t <= 0:
        return np.full(p.size, 1.0 / p.size)
    logits = -energy / t
    mass = np.exp(logits - logits.max())
    return np.asarray(mass / mass.sum())


def auto_temperature(energy: NDArray[np.float64]) -> float:
    """Return T = (2/3) mean(E).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.arange(10) / 10
    >>> round(auto_temperature(-np.log(p + EPSILON)), 2)
    1.91
    """
    return float(energy.mean() * 2.0 / 3.0)


def check(num_lists: int, *, temperature: Any) -> None:
    """Check that temperature is "auto" or a finite number above 0."""
    if isinstance(temperature, str) and temperature == "auto":
        return
    number = isinstance(temperature, (int, float, np.integer, np.floating)) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < np.inf:
        raise InputError(
            "range",
            "temperature",
            "{field} is {given!r}; it must be 'auto' or a finite number above 0",
            given=temperature,
        )


def check_both(num_lists: int, *, temperature: Any, wasserstein: Any) -> None:
    """Check the temperature as in :func:`check`, and that wasserstein is a finite number, at least 0."""
    check(num_lists, temperature=temperature)
    if not is_number(wasserstein, 0, 1e38):
        raise InputError(
            "range", "wasserstein", "{field} is {given!r}; it must be a finite number, at least 0", given=wasserstein
        )


BOLTZMANN = FusionMethod(
    "boltzmann", score, NONNEGATIVE, mixture_weights, {"temperature": "auto", "wasserstein": 0.0}, check_both
)
