"""Fusion of calibrated scores: sums, extremes, means and a copula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any, ClassVar, Literal

import numpy as np

from .._validation import check_auto, check_length, check_number, check_type, is_real, wrong_value
from ..errors import InputError
from .base import (
    NONNEGATIVE,
    FusionMethod,
    KernelOptions,
    ScoredList,
    Scores,
    UnitWeights,
    check_epsilon,
    check_nonnegative,
    held_by,
    per_list,
    values_of,
    weighted_sum,
)

__all__ = [
    "WMNZ",
    "CombANZ",
    "CombMNZ",
    "CombMax",
    "CombMed",
    "CombMin",
    "CombSum",
    "Gumbel",
    "Linear",
    "Max",
    "PowerMean",
]

#: exp(-LARGEST_EXPONENT) is a normal float32.
LARGEST_EXPONENT = 87.0


@dataclass(frozen=True, kw_only=True)
class Linear(FusionMethod):
    """score = sum_l w_l c_l over calibrated scores; a list that lacks the document adds 0.

    ``calibration="gaussian"`` first maps each list to a standard normal distribution by optimal transport;
    ``calibration=Calibration("theoretical_min_max", lower=...)`` gives TM2C2 (Bruch, Gai & Ingber, TOIS 2023).
    Default calibration: percentile rank. Default weights: (0.7, 0.3) for two lists, else equal ones.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="linear", calibration="min_max", weights=(0.5, 0.5), k=3).row(0)
    [(0, 0.5), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "linear"

    @property
    def adds_up(self) -> bool:
        return True

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return weighted_sum([one.ids for one in lists], [one.scores for one in lists], weights)


@dataclass(frozen=True, kw_only=True)
class CombSum(UnitWeights):
    """score = sum_l w_l c_l over the lists that hold the document: :class:`Linear` with other defaults.

    Default calibration: min_max. Default weights: 1 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_sum", k=3).row(0)
    [(0, 1.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_sum"
    kernel: ClassVar[str] = "linear"
    default_calibration: ClassVar[str] = "min_max"

    @property
    def adds_up(self) -> bool:
        return True

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return weighted_sum([one.ids for one in lists], [one.scores for one in lists], weights)


@dataclass(frozen=True, kw_only=True)
class CombMNZ(UnitWeights):
    """score = h^gamma sum_l w_l c_l over the h lists that hold the document.

    A list counts in h whatever its score. Default calibration: min_max. Default weights: 1 each.

    Parameters
    ----------
    gamma : float
        In [-16, 16]; 1 in the paper. Other values give CombGMNZ (Lee, SIGIR 1997).

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_mnz", k=3).row(0)
    [(1, 2.0), (0, 1.0), (2, 0.0)]
    """

    gamma: float = 1.0

    name: ClassVar[str] = "comb_mnz"
    default_calibration: ClassVar[str] = "min_max"

    def __post_init__(self) -> None:
        check_number(self.gamma, "gamma", low=-16, high=16)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        held = np.arange(1, num_lists + 1, dtype=np.float64)
        with np.errstate(over="ignore"):
            factors = np.concatenate([[0.0], held**self.gamma]).astype(np.float32)
        if not np.isfinite(factors).all():
            raise InputError(
                "finite",
                "gamma",
                "{field} is {given!r}; {num_lists} to that power overflows float32: use a smaller one",
                given=self.gamma,
                num_lists=num_lists,
            )
        return {"by_holders": factors}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        sums, held = CombSum().formula(lists, weights), held_by(lists)
        return {document: score * held[document] ** self.gamma for document, score in sums.items()}


@dataclass(frozen=True, kw_only=True)
class CombANZ(UnitWeights):
    """score = (sum_l w_l c_l) / h over the h lists that hold the document.

    Default calibration: min_max. Default weights: 1 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_anz", k=3).row(0)
    [(0, 1.0), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_anz"
    default_calibration: ClassVar[str] = "min_max"

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        sums, held = CombSum().formula(lists, weights), held_by(lists)
        return {document: score / held[document] for document, score in sums.items()}


@dataclass(frozen=True, kw_only=True)
class WMNZ(UnitWeights):
    """score = (sum_l c_l) (sum_l w_l) over the lists that hold the document (Wu & Crestani, CIKM 2002).

    Default calibration: min_max. Default weights: 1 each, with which it equals CombMNZ.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="wmnz", weights=[2.0, 1.0], k=3).row(0)
    [(1, 3.0), (0, 2.0), (2, 0.0)]
    """

    name: ClassVar[str] = "wmnz"
    default_calibration: ClassVar[str] = "min_max"

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        ids = [one.ids for one in lists]
        sums = weighted_sum(ids, [one.scores for one in lists], [1.0] * len(lists))
        votes = weighted_sum(ids, [np.ones(one.ids.size) for one in lists], weights)
        return {document: score * votes[document] for document, score in sums.items()}


@dataclass(frozen=True, kw_only=True)
class CombMin(FusionMethod):
    """score = the minimum of c_l over the lists that hold the document.

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_min", k=3).row(0)
    [(0, 1.0), (1, 0.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_min"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return _of_held(lists, min)


@dataclass(frozen=True, kw_only=True)
class CombMax(FusionMethod):
    """score = the maximum of c_l over the lists that hold the document: :class:`Max` without a bias.

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_max", k=3).row(0)
    [(0, 1.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_max"
    kernel: ClassVar[str] = "max"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"bias": np.zeros(num_lists, np.float32)}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return _of_held(lists, max)


@dataclass(frozen=True, kw_only=True)
class CombMed(FusionMethod):
    """score = the median of c_l over the lists that hold the document (of an even number, the mean of the middle two).

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_med", k=3).row(0)
    [(0, 1.0), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_med"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return _of_held(lists, median)


@dataclass(frozen=True, kw_only=True)
class Max(FusionMethod):
    """score = the maximum of (c_l + bias_l) over the lists that hold the document.

    ``bias=(0, 1e-6)`` is the union rule of the Dice-Sørensen hybrid, max(s_vec, s_graph + 1e-6). Default calibration:
    none. It takes no weights.

    Parameters
    ----------
    bias : sequence of float, length L, optional
        Added to the scores of each list. Default: 0 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[0.5, 0.25]]), hf.Hits([[1]], [[0.5]])
    >>> hf.fuse([a, b], method="max", bias=(0.0, 0.25), k=2).row(0)
    [(1, 0.75), (0, 0.5)]
    """

    bias: Sequence[float] | None = None

    name: ClassVar[str] = "max"
    default_calibration: ClassVar[str] = "none"
    weighted: ClassVar[bool] = False

    def kernel_options(self, num_lists: int) -> KernelOptions:
        if self.bias is None:
            return {"bias": np.zeros(num_lists, np.float32)}
        check_type(self.bias, "bias", (Sequence, np.ndarray), "a sequence of numbers")
        check_length(len(self.bias), "bias", num_lists, "list")
        return {"bias": per_list(self.bias, num_lists, "bias")}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        offsets = [0.0] * len(lists) if self.bias is None else [float(b) for b in self.bias]
        top: Scores = {}
        for one, offset in zip(lists, offsets, strict=True):
            for document, value in zip(one.ids.tolist(), one.scores.tolist(), strict=True):
                top[document] = max(top.get(document, -np.inf), value + offset)
        return top


@dataclass(frozen=True, kw_only=True)
class PowerMean(FusionMethod):
    """score = (sum_l w_l u_l^p / sum_l w_l)^(1/p), with u_l = c_l + epsilon; p < 1 rewards consensus (PhaseGraph).

    For a document that a list lacks, u_l = epsilon. p = 0 is the limit, the weighted geometric mean. If all weights are
    0, the score is 0. Default calibration: percentile rank. Default weights: (0.7, 0.3) for two lists, else equal ones.

    Parameters
    ----------
    p : float
        0, or 0.05 <= abs(p) <= 100; 1 is the weighted arithmetic mean, -1 the harmonic mean.
    epsilon : float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[1.0, 0.25]]), hf.Hits([[1, 0]], [[1.0, 0.25]])
    >>> hf.fuse([a, b], method="power_mean", p=0.5, calibration="none", weights=(0.5, 0.5), k=2).scores
    array([[0.5625, 0.5625]], dtype=float32)
    """

    p: float = 0.5
    epsilon: float = 1e-9

    name: ClassVar[str] = "power_mean"
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_real(self.p) or not (self.p == 0 or 0.05 <= abs(self.p) <= 100):
            raise wrong_value(self.p, "p", "0, or a number with 0.05 <= |p| <= 100")
        check_epsilon(self.epsilon)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"p": self.p, "epsilon": self.epsilon}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        used = [(number, float(w)) for number, w in enumerate(weights) if w > 0]
        total = math.fsum(w for _, w in used)
        values = [check_nonnegative(one.scores) for one in lists]
        scores = {}
        for document, own in values_of([one.ids for one in lists], values).items():
            logs = [(w, math.log(own.get(number, 0.0) + self.epsilon)) for number, w in used]
            if not used:
                scores[document] = 0.0
            elif self.p == 0:
                scores[document] = math.exp(math.fsum(w * log for w, log in logs) / total)
            else:
                most = max(self.p * log for _, log in logs)
                mean = math.fsum(w * math.exp(self.p * log - most) for w, log in logs) / total
                scores[document] = math.exp((most + math.log(mean)) / self.p)
        return scores


@dataclass(frozen=True, kw_only=True)
class Gumbel(FusionMethod):
    """score = exp(-(sum_l x_l^theta)^(1/theta)) over all lists, with x_l = max(-ln(c_l + epsilon), 0) (PhaseGraph).

    For a document that a list lacks, c_l = 0. Default calibration: percentile rank; all calibrations of Boltzmann but
    "none" are allowed. It takes no weights.

    Parameters
    ----------
    theta : "auto" or float in [1, 100]
        The assumed dependence of the lists: 1 means none (the product of all u_l = c_l + epsilon), larger values
        approach the minimum of u_l. With "auto" it is 1/(1 - tau) per query, where tau, clipped to [0, 0.95], is
        Kendall's rank correlation over the documents that two lists share, over all pairs of lists. Pairs with equal
        scores count as neither concordant nor discordant (Genest & Rivest, JASA 88, 1993). It is 1 if no two lists
        share two documents.
    epsilon : "auto" or float > 0
        Added to scores, which may be 0. "auto" is 1e-9, or exp(-87/L) for L >= 5 lists, so that the score of a document
        that only one list holds does not underflow float32. A number for which it would is an error.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[0.5, 0.25]]), hf.Hits([[1, 0]], [[1.0, 0.5]])
    >>> method = hf.fusion.Gumbel(theta=1.0)
    >>> hf.fuse([a, b], method=method, calibration="max", k=2).scores.round(4)
    array([[0.5, 0.5]], dtype=float32)
    """

    theta: float | Literal["auto"] = "auto"
    epsilon: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "gumbel"
    calibrations: ClassVar[tuple[str, ...] | None] = tuple(name for name in NONNEGATIVE if name != "none")
    needs_nonnegative: ClassVar[bool] = True
    weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_auto(self.theta, "theta", low=1, high=100, float32=True)
        check_auto(self.epsilon, "epsilon", above=0, float32=True)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        theta = 0.0 if self.theta == "auto" else self.theta
        return {"theta": theta, "epsilon": self._epsilon_of(num_lists, theta or 1.0)}

    def _epsilon_of(self, num_lists: int, theta: float) -> float:
        if self.epsilon == "auto":
            return max(1e-9, math.exp(-LARGEST_EXPONENT / num_lists))
        absent = float(num_lists - 1) ** (1.0 / theta)
        if -math.log(self.epsilon) * absent > LARGEST_EXPONENT:
            least = math.exp(-LARGEST_EXPONENT / absent)
            raise InputError(
                "range",
                "epsilon",
                "{field} is {given!r}; with {num_lists} lists the scores of documents that only one holds "
                "underflow float32: use at least {least:.2g}, or 'auto'",
                given=self.epsilon,
                num_lists=num_lists,
                least=least,
            )
        return self.epsilon

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        found = values_of([one.ids for one in lists], [check_nonnegative(one.scores) for one in lists])
        power = 1.0 / (1.0 - min(max(kendall(found), 0.0), 0.95)) if self.theta == "auto" else float(self.theta)
        least = max(1e-9, math.exp(-LARGEST_EXPONENT / len(lists))) if self.epsilon == "auto" else self.epsilon
        scores = {}
        for document, own in found.items():
            x = [max(-math.log(own.get(number, 0.0) + least), 0.0) for number in range(len(lists))]
            most = max(x)
            inner = math.fsum((value / most) ** power for value in x) if most > 0 else 0.0
            scores[document] = math.exp(-most * inner ** (1.0 / power)) if most > 0 else 1.0
        return scores


def kendall(found: dict[int, dict[int, float]]) -> float:
    """Return Kendall's tau-a over the documents shared by two lists, pooled over all pairs of lists; 0 without any.

    Over all pairs of documents and pairs of lists that hold both: the share of pairs ranked in the same order minus the
    share ranked in opposite orders. Pairs that tie in a list count as neither.

    Examples
    --------
    >>> kendall({7: {0: 3.0, 1: 0.5}, 8: {0: 2.0, 1: 0.4}, 9: {0: 1.0, 1: 0.9}})  # one agrees, two do not
    -0.3333333333333333
    """
    balance = pairs = 0
    for a, b in combinations(found.values(), 2):
        signs = [(a[number] > b[number]) - (a[number] < b[number]) for number in a.keys() & b.keys()]
        pairs += len(signs) * (len(signs) - 1) // 2
        balance += sum(one * other for one, other in combinations(signs, 2))
    return balance / pairs if pairs else 0.0


def _of_held(lists: Sequence[ScoredList], rule: Callable[[list[float]], float]) -> Scores:
    found = values_of([one.ids for one in lists], [one.scores for one in lists])
    return {document: float(rule(list(own.values()))) for document, own in found.items()}
