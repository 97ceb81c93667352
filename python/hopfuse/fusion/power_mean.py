"""The weighted power mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, KernelOptions, check_epsilon, is_finite_float32


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
        if not is_finite_float32(self.p) or not (self.p == 0 or 0.05 <= abs(self.p) <= 100):
            raise InputError(
                "UNSORTED", "p", "{field} is {given!r}; it must be 0, or a number with 0.05 <= |p| <= 100", given=self.p
            )
        check_epsilon(self.epsilon)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"p": self.p, "epsilon": self.epsilon}
