"""Rank-biased centroids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import InputError
from .base import KernelOptions, UnitWeights, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class RBC(UnitWeights):
    """score = sum_l w_l (1 - phi) phi^(rank_l - 1) over the lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each (Bailey, Moffat, Scholer & Thomas, SIGIR
    2017).

    Parameters
    ----------
    phi : float in (0, 1)
        Persistence: the probability that a reader continues to the next rank.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fuse([hf.Hits([[4, 2]], [[1.0, 0.5]])], method="rbc", phi=0.5, k=2).row(0)
    [(4, 0.5), (2, 0.25)]
    """

    phi: float = 0.9

    name: ClassVar[str] = "rbc"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        if not is_finite_float32(self.phi) or not 0 < np.float32(self.phi) < 1:
            raise InputError(
                "type", "phi", "{field} is {given!r}; it must be a float32 number between 0 and 1", given=self.phi
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"log_phi": float(np.log(float(self.phi))), "one_minus_phi": 1.0 - float(self.phi)}
