"""Boltzmann fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, check_temperature, is_finite_float32


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
    wasserstein : float >= 0
        Every T is multiplied by 1 + wasserstein W, W the Wasserstein-1 distance of the distributions of the two lists'
        calibrated scores, query by query: lists whose scores are spread in other ways are trusted less sharply. Of
        more than two lists W is the mean over all pairs; an empty list is in no pair, and W = 0 where there is none.
        Percentile ranks are spread in one way, so it says little with "pit": take "min_max" or another.

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
        if not is_finite_float32(self.wasserstein) or self.wasserstein < 0:
            raise InputError(f"wasserstein is {self.wasserstein!r}; it must be a finite float32 number, at least 0")

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([check_temperature(self.temperature), self.wasserstein], np.float32)
