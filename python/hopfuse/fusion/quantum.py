"""Fusion with quantum interference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..errors import InputError
from .base import NONNEGATIVE, KernelOptions, UnitWeights, check_temperature, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class Quantum(UnitWeights):
    """score = sum_l a_l + sum_(l < m) interference(a_l, a_m), with weighted Boltzmann probabilities a_l = w_l P_l.

    The interference is a_l a_m cos(theta) with ``form="product"`` (PhaseGraph), and 2 sqrt(a_l a_m) cos(theta) with
    ``form="sqrt"`` (the quantum probability ranking principle; Zuccon, Azzopardi & van Rijsbergen, ICTIR 2009). Every
    pair of lists interferes. For a document that a list lacks, a_l = 0. Calibrations are those of :class:`Boltzmann`.
    Default weights: 1 each.

    Parameters
    ----------
    theta : float
        In radians. Default: 0.
    form : "product" or "sqrt"
    temperature : "auto" or float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> tied = hf.Hits([[0, 1]], [[1.0, 1.0]])
    >>> hf.fuse([tied, tied], method="quantum", k=2).scores
    array([[1.25, 1.25]], dtype=float32)
    >>> hf.fuse([tied, tied], method="quantum", form="sqrt", k=2).scores
    array([[2., 2.]], dtype=float32)
    """

    theta: float = 0.0
    form: Literal["product", "sqrt"] = "product"
    temperature: float | Literal["auto"] = "auto"

    name: ClassVar[str] = "quantum"
    calibrations: ClassVar[tuple[str, ...] | None] = NONNEGATIVE
    needs_nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if not is_finite_float32(self.theta):
            raise InputError(
                "range", "theta", "{field} is {given!r}; it must be a finite number of radians", given=self.theta
            )
        if self.form not in ("product", "sqrt"):
            raise InputError(
                "UNSORTED", "form", "{field} is {given!r}; it must be 'product' or 'sqrt'", given=self.form
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        root = self.form == "sqrt"
        factor = (2.0 if root else 1.0) * math.cos(self.theta)
        return {"temperature": check_temperature(self.temperature), "interference": factor, "roots": root}
