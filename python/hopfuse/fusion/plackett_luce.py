"""Plackett-Luce strengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import InputError
from .base import FusionMethod, KernelOptions, check_epsilon


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(FusionMethod):
    """score = prod_l (s_l + epsilon)^w_l, with the strengths s_l of a Plackett-Luce model of list l (PhaseGraph).

    Strengths sum to 1. They are the result of `steps` steps of Hunter's MM algorithm (Annals of Statistics 32, 2004),
    started with equal strengths. They depend only on positions, so a calibration is an error, and equal scores get
    different strengths. One ranking has no finite maximum-likelihood strengths, and every step moves more to the top,
    so the number of steps is small and fixed. The last of two or more documents gets 0, and so does a document that the
    list lacks. Default weights: (0.7, 0.3) for two lists, else equal ones.

    Parameters
    ----------
    steps : int, 1 to 100
    epsilon : float > 0

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([hits], method="plackett_luce", steps=1, k=3).scores.round(4)
    array([[0.7143, 0.2857, 0.    ]], dtype=float32)
    """

    steps: int = 3
    epsilon: float = 1e-9

    name: ClassVar[str] = "plackett_luce"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int | np.integer) or isinstance(self.steps, bool) or not 1 <= self.steps <= 100:
            raise InputError(
                "range", "steps", "{field} is {given!r}; it must be a whole number from 1 to 100", given=self.steps
            )
        check_epsilon(self.epsilon)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"steps": self.steps, "epsilon": self.epsilon}
