"""Boltzmann fusion (PhaseGraph)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .method import NONNEGATIVE, FusionMethod, ScoredList, Scores, mixture_weights, weighted_sum

EPSILON = 1e-9


def score(lists: Sequence[ScoredList], weights: Any, *, temperature: Any) -> Scores:
    """Sum of w_l P_l, where P_l is a Boltzmann distribution over the documents of list l.

    With p >= 0 the calibrated scores of a list: energies E = -ln(p + 1e-9), temperature
    T = (2/3) mean(E) unless it is given, P = softmax(-E / T). Where that T <= 0 (as when every p is
    1, or exceeds 1 under calibration "none") P is uniform, as it is for tied lists and singletons.

    Parameters
    ----------
    lists : L lists
        A list that lacks a document adds 0; an empty list adds nothing.
    weights : (L,)
        They need not sum to 1.
    temperature : "auto" or float > 0

    References
    ----------
    PhaseGraph.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.reference.fusion.method import ScoredList
    >>> halves = ScoredList(np.array([4, 2]), np.array([0.5, 0.5]))
    >>> score([halves], [1.0], temperature="auto")
    {4: 0.5, 2: 0.5}
    """
    values = [distribution(one.scores, temperature) for one in lists]
    return weighted_sum([one.ids for one in lists], values, weights)


def distribution(p: NDArray[np.float64], temperature: Any) -> NDArray[np.float64]:
    """P = softmax(-E / T) of one list of calibrated scores.

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
            f"calibrated score {p.min()} is negative, and -ln(p) needs p >= 0; use calibration 'pit', 'min_max' or "
            "'rank', whose values never are"
        )
    energy = -np.log(p + EPSILON)
    t = auto_temperature(energy) if temperature == "auto" else float(temperature)
    if t <= 0:
        return np.full(p.size, 1.0 / p.size)
    logits = -energy / t
    mass = np.exp(logits - logits.max())
    return np.asarray(mass / mass.sum())


def auto_temperature(energy: NDArray[np.float64]) -> float:
    """T = (2/3) mean(E).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.arange(10) / 10
    >>> round(auto_temperature(-np.log(p + EPSILON)), 2)
    1.91
    """
    return float(energy.mean() * 2.0 / 3.0)


def check(num_lists: int, *, temperature: Any) -> None:
    """temperature is "auto" or a finite number above 0."""
    if isinstance(temperature, str) and temperature == "auto":
        return
    number = isinstance(temperature, (int, float, np.integer, np.floating)) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < np.inf:
        raise InputError(f"temperature is {temperature!r}; it must be 'auto' or a finite number above 0")


BOLTZMANN = FusionMethod("boltzmann", score, NONNEGATIVE, mixture_weights, {"temperature": "auto"}, check)
