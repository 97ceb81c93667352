"""Fusion of ranks: scores count only through their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._arrays.distinct import distinct
from .._validation import check_choice, check_number, check_whole
from .base import (
    FusionMethod,
    KernelOptions,
    ScoredList,
    Scores,
    UnitWeights,
    check_epsilon,
    held_by,
    values_of,
    weighted_product,
    weighted_sum,
)

__all__ = [
    "ISR",
    "RBC",
    "RRF",
    "Borda",
    "Condorcet",
    "LogISR",
    "PlackettLuce",
]


@dataclass(frozen=True, kw_only=True)
class RRF(UnitWeights):
    """score = sum_l w_l / (k + rank_l) over the lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each. If only one list is not empty, the fused
    order is its order. A bonus for documents that match the query exactly can be given as one more list, whose weight
    is the bonus at rank 1 times ``rank_constant + 1``.

    Parameters
    ----------
    rank_constant : float >= 0
        The paper's k. Default: 60 (Cormack, Clarke & Buettcher, SIGIR 2009).

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fuse([hf.Hits([[4, 2]], [[1.0, 0.5]])], method="rrf", rank_constant=1, k=2).row(0)
    [(4, 0.5), (2, 0.3333333432674408)]
    """

    rank_constant: float = 60.0

    name: ClassVar[str] = "rrf"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        constant = check_number(self.rank_constant, "rank_constant", low=0, float32=True)
        object.__setattr__(self, "rank_constant", constant)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"rank_constant": self.rank_constant}

    @property
    def adds_up(self) -> bool:
        return True

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        values = [1.0 / (self.rank_constant + np.arange(1.0, one.ids.size + 1)) for one in lists]
        return weighted_sum([one.ids for one in lists], values, weights)


@dataclass(frozen=True, kw_only=True)
class ISR(UnitWeights):
    """score = h sum_l w_l / rank_l^2 over the h lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each (Mourao, Martins & Magalhaes,
    Computerized Medical Imaging and Graphics 39, 2015).

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="isr", k=2).row(0)
    [(2, 2.5), (4, 1.0)]
    """

    name: ClassVar[str] = "isr"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"by_holders": np.arange(num_lists + 1, dtype=np.float32)}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        held = held_by(lists)
        return {document: held[document] * score for document, score in _inverse_squares(lists, weights).items()}


@dataclass(frozen=True, kw_only=True)
class LogISR(UnitWeights):
    """score = ln(h + sigma) sum_l w_l / rank_l^2 over the h lists that hold the document; ranks start at 1.

    With sigma = 0, as in the paper, a document in only one list has score 0. Only ranks matter, so a calibration is an
    error. Default weights: 1 each (Mourao, Martins & Magalhaes, Computerized Medical Imaging and Graphics 39, 2015).

    Parameters
    ----------
    sigma : float in [0, 1]
        0.01 gives the variant known as logN ISR.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="log_isr", k=2).scores.round(4)
    array([[0.8664, 0.    ]], dtype=float32)
    """

    sigma: float = 0.0

    name: ClassVar[str] = "log_isr"
    kernel: ClassVar[str] = "isr"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        check_number(self.sigma, "sigma", low=0, high=1)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        by_holders = [0.0, *(math.log(held + self.sigma) for held in range(1, num_lists + 1))]
        return {"by_holders": np.array(by_holders, np.float32)}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        held, sums = held_by(lists), _inverse_squares(lists, weights)
        return {document: math.log(held[document] + self.sigma) * score for document, score in sums.items()}


@dataclass(frozen=True, kw_only=True)
class Borda(UnitWeights):
    """score = sum_l w_l points_l, with N - rank + 1 points in a union of N documents; ranks start at 1.

    Only ranks matter, so a calibration is an error. An empty list gives all documents the same. Default weights: 1 each
    (Aslam & Montague, SIGIR 2001).

    Parameters
    ----------
    missing : "mean" or "zero"
        The points of a document that a list of length n lacks: (N - n + 1)/2, the mean of the remaining points
        (BordaFuse), or 0.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="borda", k=3).row(0)
    [(0, 4.5), (2, 4.0), (1, 3.5)]
    """

    missing: Literal["mean", "zero"] = "mean"

    name: ClassVar[str] = "borda"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        check_choice(self.missing, "missing", ("mean", "zero"))

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"missing": self.missing == "mean"}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        places = values_of([one.ids for one in lists], [np.arange(one.ids.size, dtype=np.float64) for one in lists])
        n, scores = len(places), {}
        for document, own in places.items():
            rest = [0.5 * (n - one.ids.size + 1) if self.missing == "mean" else 0.0 for one in lists]
            points = [n - own[number] if number in own else rest[number] for number in range(len(lists))]
            scores[document] = math.fsum(float(w) * p for w, p in zip(weights, points, strict=True))
        return scores


@dataclass(frozen=True, kw_only=True)
class RBC(UnitWeights):
    """score = sum_l w_l (1 - phi) phi^(rank_l - 1) over the lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each (Bailey, Moffat, Scholer & Thomas, SIGIR
    2017).

    Parameters
    ----------
    phi : float in (0, 1)
        Persistence: the probability that a reader continues to the next rank.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fuse([hf.Hits([[4, 2]], [[1.0, 0.5]])], method="rbc", phi=0.5, k=2).row(0)
    [(4, 0.5), (2, 0.25)]
    """

    phi: float = 0.9

    name: ClassVar[str] = "rbc"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        check_number(self.phi, "phi", above=0, below=1, float32=True)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"log_phi": math.log(self.phi), "one_minus_phi": 1.0 - float(self.phi)}

    @property
    def adds_up(self) -> bool:
        return True

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        values = [(1.0 - self.phi) * np.power(np.float64(self.phi), np.arange(one.ids.size)) for one in lists]
        return weighted_sum([one.ids for one in lists], values, weights)


@dataclass(frozen=True, kw_only=True)
class Condorcet(UnitWeights):
    """score = the number of documents that it beats by weighted majority, plus half the number of ties (Copeland).

    A document beats another if the lists that rank it higher have a larger total weight than those that rank it lower.
    A list ranks the documents that it holds above those that it lacks, and does not rank two that it lacks. Majorities
    need not be transitive: documents of a cycle, in which ties count in both directions, are ordered by how many others
    they beat, then by id. Otherwise the order follows Condorcet fusion, where the order within a cycle depends on the
    sort's starting point (Montague & Aslam, CIKM 2002). Weights are rounded to float32 once and then summed exactly, so
    that equal votes tie. Default weights: 1 each.

    Only ranks matter, so a calibration is an error. The cost of a query is the square of its union's size times the
    number of lists.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]]), hf.Hits([[1, 2, 0]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([a, b, hf.Hits([[0]], [[1.0]])], method="condorcet", k=3).row(0)
    [(0, 2.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "condorcet"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        documents = distinct(np.concatenate([one.ids for one in lists]))
        balance = majorities([np.searchsorted(documents, one.ids) for one in lists], weights, documents.size)
        wins = (balance > 0).sum(axis=1) + 0.5 * ((balance == 0).sum(axis=1) - 1)
        return dict(zip(documents.tolist(), wins.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(FusionMethod):
    """score = prod_l (s_l + epsilon)^w_l, with the strengths s_l of a Plackett-Luce model of list l (PhaseGraph).

    Strengths sum to 1. They are the result of `steps` steps of Hunter's MM algorithm (Annals of Statistics 32, 2004),
    started with equal strengths. They depend only on positions, so a calibration is an error, and equal scores get
    different strengths. One ranking has no finite maximum-likelihood strengths, and every step moves more to the top,
    so the number of steps is small and fixed. The last of two or more documents gets 0, and so does a document that the
    list lacks. Default weights: (0.7, 0.3) for two lists, else equal ones.

    Parameters
    ----------
    steps : int, 1 to 100
    epsilon : float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([hits], method="plackett_luce", steps=1, k=3).scores.round(4)
    array([[0.7143, 0.2857, 0.    ]], dtype=float32)
    """

    steps: int = 3
    epsilon: float = 1e-9

    name: ClassVar[str] = "plackett_luce"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        check_whole(self.steps, "steps", 100)
        check_epsilon(self.epsilon)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"steps": self.steps, "epsilon": self.epsilon}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        values = [strengths(one.ids.size, self.steps) for one in lists]
        return weighted_product(lists, values, weights, self.epsilon)


def majorities(places: Sequence[NDArray[np.int64]], weights: Any, documents: int) -> NDArray[np.float64]:
    """Return the weight of the lists that rank a above b minus those that rank it below, (documents, documents).

    A list ranks the documents that it holds (`places`, best first) above those that it lacks, and does not rank two
    that it lacks. Weights are rounded to float32, so that their float64 sums are exact and equal votes tie.

    Examples
    --------
    >>> import numpy as np
    >>> majorities([np.array([1, 0])], [2.0], 3)
    array([[ 0., -2.,  2.],
           [ 2.,  0.,  2.],
           [-2., -2.,  0.]])
    """
    balance = np.zeros((documents, documents))
    for own, weight in zip(places, np.asarray(weights, np.float32).astype(np.float64), strict=True):
        rank = np.full(documents, own.size)
        rank[own] = np.arange(own.size)
        balance += weight * np.sign(rank[None, :] - rank[:, None])
    return balance


def strengths(n: int, steps: int) -> NDArray[np.float64]:
    """Return the Plackett-Luce strengths of one ranking of n items, with sum 1, by Hunter's MM algorithm.

    It starts with equal strengths. A step sets the strength of the item of rank r to
    [r < n] / sum_(t <= min(r, n - 1)) 1/S_t, where S_t is the sum of the strengths of rank t and below. This is
    equation 30, for one ranking, of Hunter, "MM Algorithms for Generalized Bradley-Terry Models", Annals of Statistics
    32, 2004.

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


def _inverse_squares(lists: Sequence[ScoredList], weights: Any) -> Scores:
    values = [1.0 / np.arange(1.0, one.ids.size + 1) ** 2 for one in lists]
    return weighted_sum([one.ids for one in lists], values, weights)
