"""Fusion by probabilities: each list is a distribution, and distributions are mixed, multiplied or interfere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_number
from .base import (
    NONNEGATIVE,
    FusionMethod,
    KernelOptions,
    ScoredList,
    Scores,
    UnitWeights,
    check_epsilon,
    check_nonnegative,
    check_temperature,
    per_list,
    values_of,
    weighted_product,
    weighted_sum,
)

__all__ = [
    "Boltzmann",
    "LogLinear",
    "Quantum",
    "Tsallis",
]

EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True)
class Boltzmann(FusionMethod):
    """A weighted sum of Boltzmann distributions, one per list, with energies from percentile ranks (PhaseGraph).

    E = -ln(p + 1e-9); P = softmax(-E / T) per list; score = sum_l w_l P_l. A list that lacks the document adds 0. P is
    uniform for a list with one hit or all tied; with "auto" also for a list without any p below 1 (which
    ``calibration="none"`` may give). Default weights: (0.7, 0.3) for two lists, else equal ones. With
    ``ties="strict"``, the minimum of a list has p = 0 and gets almost nothing.

    Parameters
    ----------
    temperature : "auto" or float > 0
        "auto" is 2/3 of the list's mean energy.
    wasserstein : float >= 0
        Every T is multiplied by 1 + wasserstein W, where W is the Wasserstein-1 distance between the calibrated scores
        of the query's two lists; lists with differently distributed scores thus get flatter distributions. With more
        than two lists, W is the mean over all pairs of non-empty lists, and 0 without pairs. Percentile ranks of all
        lists have nearly the same distribution, so use another calibration than "pit", such as "min_max".

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fusion.Boltzmann(temperature=0.6)
    Boltzmann(temperature=0.6, wasserstein=0.0)
    """

    temperature: float | Literal["auto"] = "auto"
    wasserstein: float = 0.0

    name: ClassVar[str] = "boltzmann"
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_number(self.wasserstein, "wasserstein", low=0, float32=True)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"temperature": check_temperature(self.temperature), "wasserstein": self.wasserstein}

    @property
    def adds_up(self) -> bool:
        return self.wasserstein == 0

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        factor = 1.0 + self.wasserstein * mean_distance([one.scores for one in lists]) if self.wasserstein else 1.0
        values = [distribution(one.scores, self.temperature, factor) for one in lists]
        return weighted_sum([one.ids for one in lists], values, weights)


@dataclass(frozen=True, kw_only=True)
class Tsallis(FusionMethod):
    """:class:`Boltzmann` with the q-exponential in place of the exponential (PhaseGraph; Tsallis 1988).

    P_i = e_q(-E_i/T) / sum_j e_q(-E_j/T) with e_q(x) = [1 + (1 - q) x]_+^(1/(1 - q)), and e_1 = exp;
    score = sum_l w_l P_l. q > 1 gives a longer tail, q < 1 cuts it off. A list that lacks the document adds 0. P is
    uniform for a list with one hit, all tied, or all cut off. All calibrations of Boltzmann but "none" are allowed.
    Default weights: (0.7, 0.3) for two lists, else equal ones.

    Parameters
    ----------
    q : float or sequence of float, length L
        In [0, 10]. PhaseGraph's q > 1 for the graph list only is ``q=(1.0, 1.5)``.
    temperature : "auto" or float > 0
        "auto" is 2/3 of the list's mean energy.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([hits], method="tsallis", q=2.0, temperature=1.0, calibration="rank", k=3).scores.round(4)
    array([[0.457 , 0.3252, 0.2178]], dtype=float32)
    """

    q: float | Sequence[float] = 1.5
    temperature: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "tsallis"
    calibrations: ClassVar[tuple[str, ...] | None] = tuple(name for name in NONNEGATIVE if name != "none")
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if isinstance(self.q, Sequence | np.ndarray) and not isinstance(self.q, str):
            object.__setattr__(self, "q", tuple(self.q))

    def kernel_options(self, num_lists: int) -> KernelOptions:
        q = per_list(self.q, num_lists, "q", low=0, high=10)
        return {"temperature": check_temperature(self.temperature), "q": q}

    @property
    def adds_up(self) -> bool:
        return not isinstance(self.q, tuple)

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        of_list = np.broadcast_to(np.asarray(self.q, np.float64), len(lists))
        values = [
            q_distribution(one.scores, float(own), self.temperature) for one, own in zip(lists, of_list, strict=True)
        ]
        return weighted_sum([one.ids for one in lists], values, weights)


@dataclass(frozen=True, kw_only=True)
class Quantum(UnitWeights):
    """score = sum_l a_l + sum_(l < m) interference(a_l, a_m), with weighted Boltzmann probabilities a_l = w_l P_l.

    The interference is a_l a_m cos(theta) with ``form="product"`` (PhaseGraph), and 2 sqrt(a_l a_m) cos(theta) with
    ``form="sqrt"`` (the quantum probability ranking principle; Zuccon, Azzopardi & van Rijsbergen, ICTIR 2009). Every
    pair of lists interferes. For a document that a list lacks, a_l = 0. Calibrations are as for :class:`Boltzmann`.
    Default weights: 1 each.

    Parameters
    ----------
    theta : float
        In radians. Default: 0.
    form : "product" or "sqrt"
    temperature : "auto" or float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> tied = hf.Hits([[0, 1]], [[1.0, 1.0]])
    >>> hf.fuse([tied, tied], method="quantum", k=2).scores
    array([[1.25, 1.25]], dtype=float32)
    >>> hf.fuse([tied, tied], method="quantum", form="sqrt", k=2).scores
    array([[2., 2.]], dtype=float32)
    """

    theta: float = 0.0
    form: Literal["product", "sqrt"] = "product"
    temperature: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "quantum"
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_number(self.theta, "theta", float32=True)
        check_choice(self.form, "form", ("product", "sqrt"))

    def kernel_options(self, num_lists: int) -> KernelOptions:
        root = self.form == "sqrt"
        factor = (2.0 if root else 1.0) * math.cos(self.theta)
        return {"temperature": check_temperature(self.temperature), "interference": factor, "roots": root}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        values = [distribution(one.scores, self.temperature) for one in lists]
        scores = {}
        for document, own in values_of([one.ids for one in lists], values).items():
            mass = [float(weights[number]) * value for number, value in own.items()]
            if self.form == "product":
                waves = [a * b * math.cos(self.theta) for a, b in combinations(mass, 2)]
            else:
                waves = [2.0 * math.sqrt(a * b) * math.cos(self.theta) for a, b in combinations(mass, 2)]
            scores[document] = math.fsum([*mass, *waves])
        return scores


@dataclass(frozen=True, kw_only=True)
class LogLinear(FusionMethod):
    """score = prod_l (P_l + epsilon)^w_l, with the probabilities P_l of :class:`Boltzmann`.

    For two lists it is P_v^w P_g^(1 - w) (PhaseGraph). A list that lacks the document has P_l = 0, so its factor is
    epsilon^w_l. Calibrations and default weights are as for Boltzmann.

    Parameters
    ----------
    temperature : "auto" or float > 0
    epsilon : float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 0]], [[0.9, 0.1]])
    >>> method = hf.fusion.LogLinear(temperature=1.0)
    >>> hf.fuse([a, b], method=method, calibration="rank", weights=(0.5, 0.5), k=2).scores.round(4)
    array([[0.4714, 0.4714]], dtype=float32)
    """

    temperature: float | Literal["auto"] = "auto"
    epsilon: float = 1e-9

    name: ClassVar[str] = "log_linear"
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_epsilon(self.epsilon)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"temperature": check_temperature(self.temperature), "epsilon": self.epsilon}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        values = [distribution(one.scores, self.temperature) for one in lists]
        return weighted_product(lists, values, weights, self.epsilon)


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
    check_nonnegative(p)
    energy = -np.log(p + EPSILON)
    t = (auto_temperature(energy) if temperature == "auto" else float(temperature)) * factor
    if t <= 0:
        return np.full(p.size, 1.0 / p.size)
    logits = -energy / t
    mass = np.exp(logits - logits.max())
    return np.asarray(mass / mass.sum())


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
    check_nonnegative(p)
    energy = -np.log(p + EPSILON)
    t = auto_temperature(energy) if temperature == "auto" else float(temperature)
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
