"""Gumbel copula fusion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, check_epsilon, is_finite_float32

#: exp(-87) is a normal float32.
LARGEST_EXPONENT = 87.0


@dataclass(frozen=True, kw_only=True)
class Gumbel(FusionMethod):
    """score = exp(-(sum_l x_l^theta)^(1/theta)), x_l = max(-ln(c_l + epsilon), 0), over all lists (PhaseGraph).

    A list that lacks the document, be it empty, has c = 0 for it. Default calibration: percentile rank; every one of
    Boltzmann but "none". It reads no weights.

    Parameters
    ----------
    theta : "auto" or float in [1, 100]
        How far the lists are taken to depend on each other: 1 not at all (the product of all u), larger ones more
        (the least u). "auto" is 1/(1 - tau) query by query, tau within [0, 0.95] Kendall's rank correlation of the
        documents that two lists share, over all pairs of lists, where equal scores count as pairs that neither agree
        nor disagree (Genest & Rivest, JASA 88, 1993); 1 where no two lists share two documents.
    epsilon : "auto" or float > 0
        What stands for a score of 0. "auto" is 1e-9, and exp(-87/L) for L lists from five on, so that float32 holds
        the score of a document that all lists but one lack. A number with which it cannot is an error.

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
        if isinstance(self.theta, str) and self.theta == "auto":
            pass
        elif not is_finite_float32(self.theta) or not 1 <= self.theta <= 100:
            raise InputError(f"theta is {self.theta!r}; it must be 'auto' or a number in [1, 100]")
        if self.epsilon != "auto":
            check_epsilon(self.epsilon)

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        theta = 0.0 if self.theta == "auto" else self.theta
        return np.array([theta, self._epsilon_of(num_lists, theta or 1.0)], np.float32)

    def _epsilon_of(self, num_lists: int, theta: float) -> float:
        if self.epsilon == "auto":
            return max(1e-9, math.exp(-LARGEST_EXPONENT / num_lists))
        absent = float(num_lists - 1) ** (1.0 / theta)
        if -math.log(self.epsilon) * absent > LARGEST_EXPONENT:
            least = math.exp(-LARGEST_EXPONENT / absent)
            raise InputError(
                f"epsilon is {self.epsilon!r}; with {num_lists} lists float32 cannot hold the scores of documents that "
                f"all but one lack: give at least {least:.2g}, or 'auto'"
            )
        return self.epsilon
