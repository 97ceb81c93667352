"""Gumbel copula fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, check_epsilon, is_finite_float32


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
    epsilon : float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[0.5, 0.25]]), hf.Hits([[1, 0]], [[1.0, 0.5]])
    >>> method = hf.fusion.Gumbel(theta=1.0)
    >>> hf.fuse([a, b], method=method, calibration="max", k=2).scores.round(4)
    array([[0.5, 0.5]], dtype=float32)
    """

    theta: float | Literal["auto"] = "auto"
    epsilon: float = 1e-9

    name: ClassVar[str] = "gumbel"
    calibrations: ClassVar[tuple[str, ...] | None] = tuple(name for name in NONNEGATIVE if name != "none")
    needs_nonnegative: ClassVar[bool] = True
    weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.theta, str) and self.theta == "auto":
            pass
        elif not is_finite_float32(self.theta) or not 1 <= self.theta <= 100:
            raise InputError(f"theta is {self.theta!r}; it must be 'auto' or a number in [1, 100]")
        check_epsilon(self.epsilon)

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([0.0 if self.theta == "auto" else self.theta, self.epsilon], np.float32)
