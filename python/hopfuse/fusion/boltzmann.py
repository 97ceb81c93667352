"""Boltzmann fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .base import NONNEGATIVE, FusionMethod, check_temperature


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
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([check_temperature(self.temperature)], np.float32)
