"""Boltzmann fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..errors import InputError
from .base import NONNEGATIVE, FusionMethod, KernelOptions, check_temperature, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class Boltzmann(FusionMethod):
    """A weighted sum of Boltzmann distributions, one per list, with energies from percentile ranks (PhaseGraph).

    E = -ln(p + 1e-9); P = softmax(-E / T) per list; score = sum_l w_l P_l. A list that lacks the document adds 0. P is
    uniform for a list with one hit or all tied; with "auto" also for a list without any p below 1 (which
    ``calibration="none"`` may give). Default weights: (0.7, 0.3) for two lists, else equal ones. With
    ``ties="strict"``, the minimum of a list has p = 0 and gets almost nothing.

    Parameters
    ----------
    temperature : "auto" or float > 0
        "auto" is 2/3 of the list's mean energy.
    wasserstein : float >= 0
        Every T is multiplied by 1 + wasserstein W, where W is the Wasserstein-1 distance between the calibrated scores
        of the query's two lists; lists with differently distributed scores thus get flatter distributions. With more
        than two lists, W is the mean over all pairs of non-empty lists, and 0 without pairs. Percentile ranks of all
        lists have nearly the same distribution, so use another calibration than "pit", such as "min_max".

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
            raise InputError(
                "range",
                "wasserstein",
                "{field} is {given!r}; it must be a finite float32 number, at least 0",
                given=self.wasserstein,
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"temperature": check_temperature(self.temperature), "wasserstein": self.wasserstein}
