"""Gumbel copula fusion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, KernelOptions, check_epsilon, is_finite_float32

#: exp(-LARGEST_EXPONENT) is a normal float32.
LARGEST_EXPONENT = 87.0


@dataclass(frozen=True, kw_only=True)
class Gumbel(FusionMethod):
    """score = exp(-(sum_l x_l^theta)^(1/theta)) over all lists, with x_l = max(-ln(c_l + epsilon), 0) (PhaseGraph).

    For a document that a list lacks, c_l = 0. Default calibration: percentile rank; all calibrations of Boltzmann but
    "none" are allowed. It takes no weights.

    Parameters
    ----------
    theta : "auto" or float in [1, 100]
        The assumed dependence of the lists: 1 means none (the product of all u_l = c_l + epsilon), larger values
        approach the minimum of u_l. "auto" is 1/(1 - tau) per query, where tau, clipped to [0, 0.95], is Kendall's rank
        correlation over the documents that two lists share, over all pairs of lists; pairs with equal scores count as
        neither concordant nor discordant (Genest & Rivest, JASA 88, 1993). It is 1 if no two lists share two documents.
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
        if isinstance(self.theta, str) and self.theta == "auto":
            pass
        elif not is_finite_float32(self.theta) or not 1 <= self.theta <= 100:
            raise InputError(
                "range", "theta", "{field} is {given!r}; it must be 'auto' or a number in [1, 100]", given=self.theta
            )
        if self.epsilon != "auto":
            check_epsilon(self.epsilon)

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
