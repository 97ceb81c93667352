"""Variants of Boltzmann fusion: Tsallis' q-exponential, quantum interference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from . import boltzmann
from .method import (
    NONNEGATIVE,
    FusionMethod,
    ScoredList,
    Scores,
    is_number,
    mixture_weights,
    unit_weights,
    values_of,
    weighted_sum,
)


def tsallis(lists: Sequence[ScoredList], weights: Any, *, q: Any, temperature: Any) -> Scores:
    """Return the sum of w_l P_l, with P_l as in :mod:`.boltzmann` but with the q-exponential.

    References
    ----------
    PhaseGraph's comparison set. Tsallis, "Possible generalization of Boltzmann-Gibbs statistics", Journal of
    Statistical Physics 52, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> one = ScoredList(np.array([4, 2]), np.array([1.0, np.exp(-1.0)]))
    >>> scores = tsallis([one], [1.0], q=2.0, temperature=1.0)  # 1 against 1/(1 + 1)
    >>> {document: round(score, 6) for document, score in scores.items()}
    {4: 0.666667, 2: 0.333333}
    """
    of_list = np.broadcast_to(np.asarray(q, np.float64), len(lists))
    values = [q_distribution(one.scores, float(own), temperature) for one, own in zip(lists, of_list, strict=True)]
    return weighted_sum([one.ids for one in lists], values, weights)


def q_distribution(p: NDArray[np.float64], q: float, temperature: Any) -> NDArray[np.float64]:
    """Return P_i = e_q(-E_i/T) / sum_j e_q(-E_j/T), e_q(x) = [1 + (1 - q) x]_+^(1/(1 - q)); uniform if all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> q_distribution(np.array([0.6, 0.2]), 1.0, 1.0).round(6)
    array([0.75, 0.25])
    """
    if p.size == 0:
        return p
    if (p < 0).any():
        raise InputError("range", None, "calibrated score {min} is negative, but -ln(p) needs p >= 0", min=p.min())
    energy = -np.log(p + boltzmann.EPSILON)
    t = boltzmann.auto_temperature(energy) if temperature == "auto" else float(temperature)
    if t <= 0:
        return np.full(p.size, 1.0 / p.size)
    if q == 1.0:
        logs = -energy / t
    else:
        with np.errstate(divide="ignore"):
            logs = np.log1p(np.maximum((1.0 - q) * (-energy / t), -1.0)) / (1.0 - q)
    if np.isneginf(logs).all():
        return np.full(p.size, 1.0 / p.size)
    mass = np.exp(logs - logs.max())
    return np.asarray(mass / mass.sum())


def quantum(lists: Sequence[ScoredList], weights: Any, *, theta: float, form: str, temperature: Any) -> Scores:
    """Return the sum of a_l and of the interference of every pair, with a_l = w_l P_l and P_l as in :mod:`.boltzmann`.

    The interference of a pair is a_l a_m cos(theta) if `form` is "product", 2 sqrt(a_l a_m) cos(theta) if it is "sqrt".
    For a document that a list lacks, a_l = 0.

    References
    ----------
    product: PhaseGraph's comparison set. sqrt: Zuccon, Azzopardi & van Rijsbergen, "The Quantum Probability Ranking
    Principle for Information Retrieval", ICTIR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> halves = ScoredList(np.array([4, 2]), np.array([0.5, 0.5]))
    >>> quantum([halves, halves], [1.0, 1.0], theta=0.0, form="product", temperature="auto")
    {4: 1.25, 2: 1.25}
    """
    values = [boltzmann.distribution(one.scores, temperature) for one in lists]
    scores = {}
    for document, own in values_of([one.ids for one in lists], values).items():
        mass = [float(weights[number]) * value for number, value in own.items()]
        if form == "product":
            waves = [a * b * math.cos(theta) for a, b in combinations(mass, 2)]
        else:
            waves = [2.0 * math.sqrt(a * b) * math.cos(theta) for a, b in combinations(mass, 2)]
        scores[document] = math.fsum([*mass, *waves])
    return scores


def check_tsallis(num_lists: int, *, q: Any, temperature: Any) -> None:
    """Check the temperature as in boltzmann, and that q is a number from 0 to 10, or one per list."""
    boltzmann.check(num_lists, temperature=temperature)
    many = list(q) if isinstance(q, (list, tuple, np.ndarray)) else [q]
    if len(many) not in (1, num_lists) or not all(is_number(one, 0, 10) for one in many):
        raise InputError(
            "length",
            "q",
            "{field} is {given!r}; it must be a number in [0, 10], or {num_lists} of them, one per list",
            given=q,
            num_lists=num_lists,
        )


def check_quantum(num_lists: int, *, theta: Any, form: Any, temperature: Any) -> None:
    """Check the temperature as in boltzmann, that theta is finite, and that form is "product" or "sqrt"."""
    boltzmann.check(num_lists, temperature=temperature)
    if not is_number(theta, -1e30, 1e30):
        raise InputError("range", "theta", "{field} is {given!r}; it must be a finite number of radians", given=theta)
    if form not in ("product", "sqrt"):
        raise InputError("UNSORTED", "form", "{field} is {given!r}; it must be 'product' or 'sqrt'", given=form)


_ALL_BUT_NONE = tuple(name for name in NONNEGATIVE if name != "none")
TSALLIS = FusionMethod(
    "tsallis", tsallis, _ALL_BUT_NONE, mixture_weights, {"q": 1.5, "temperature": "auto"}, check_tsallis
)
QUANTUM = FusionMethod(
    "quantum",
    quantum,
    NONNEGATIVE,
    unit_weights,
    {"theta": 0.0, "form": "product", "temperature": "auto"},
    check_quantum,
)
