"""Boltzmann fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import FusionMethod, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class Boltzmann(FusionMethod):
    """Percentile ranks as energies, a softmax per list, a weighted sum (PhaseGraph).

    E = -ln(p + 1e-9); P = softmax(-E / T) per list; score = sum_l w_l P_l. A list that lacks the
    document adds 0; a list of one, or all tied, is uniform, and so is a list without a p below 1 under "auto"
    (calibration="none" on scores above 1: calibrate them). Default weights: (0.7, 0.3) for two lists,
    equal ones otherwise. Under ``ties="strict"`` p = 0 occurs, and a list's minimum gets almost nothing.

    Parameters
    ----------
    temperature : "auto" or float > 0
        "auto" is 2/3 of the list's mean energy.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fusion.Boltzmann(temperature=0.6)
    Boltzmann(temperature=0.6)
    """

    temperature: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "boltzmann"
    calibrations: ClassVar[tuple[str, ...] | None] = ("pit", "min_max", "max", "l2", "rank", "none")
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        t = self.temperature
        if isinstance(t, str) and t == "auto":
            return
        if not is_finite_float32(t) or not np.float32(t) > 0:
            raise InputError(f"temperature is {t!r}; it must be 'auto' or a float32 number above 0")

    def default_weights(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([0.7, 0.3], np.float32) if num_lists == 2 else super().default_weights(num_lists)

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([0.0 if self.temperature == "auto" else self.temperature], np.float32)
