"""Inverse square rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import InputError
from .base import KernelOptions, UnitWeights, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class ISR(UnitWeights):
    """score = h sum_l w_l / rank_l^2 over the h lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each (Mourao, Martins & Magalhaes,
    Computerized Medical Imaging and Graphics 39, 2015).

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="isr", k=2).row(0)
    [(2, 2.5), (4, 1.0)]
    """

    name: ClassVar[str] = "isr"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"by_holders": np.arange(num_lists + 1, dtype=np.float32)}


@dataclass(frozen=True, kw_only=True)
class LogISR(UnitWeights):
    """score = ln(h + sigma) sum_l w_l / rank_l^2 over the h lists that hold the document; ranks start at 1.

    With sigma = 0, as in the paper, a document in only one list has score 0. Only ranks matter, so a calibration is an
    error. Default weights: 1 each (Mourao, Martins & Magalhaes, Computerized Medical Imaging and Graphics 39, 2015).

    Parameters
    ----------
    sigma : float in [0, 1]
        0.01 gives the variant known as logN ISR.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="log_isr", k=2).scores.round(4)
    array([[0.8664, 0.    ]], dtype=float32)
    """

    sigma: float = 0.0

    name: ClassVar[str] = "log_isr"
    kernel: ClassVar[str] = "isr"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        if not is_finite_float32(self.sigma) or not 0 <= self.sigma <= 1:
            raise InputError("range", "sigma", "{field} is {given!r}; it must be a number in [0, 1]", given=self.sigma)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        held = np.arange(1, num_lists + 1, dtype=np.float64)
        return {"by_holders": np.concatenate([[0.0], np.log(held + self.sigma)]).astype(np.float32)}
