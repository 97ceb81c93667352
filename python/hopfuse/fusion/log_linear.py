"""Log-linear pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from .base import NONNEGATIVE, FusionMethod, KernelOptions, check_epsilon, check_temperature


@dataclass(frozen=True, kw_only=True)
class LogLinear(FusionMethod):
    """score = prod_l (P_l + epsilon)^w_l, with the probabilities P_l of :class:`Boltzmann`.

    For two lists it is P_v^w P_g^(1 - w) (PhaseGraph). A list that lacks the document has P_l = 0, so its factor is
    epsilon^w_l. Calibrations and default weights are those of Boltzmann.

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
