"""Linear fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import FusionMethod


@dataclass(frozen=True, kw_only=True)
class Linear(FusionMethod):
    """score = sum_l w_l c_l over calibrated scores; a list that lacks the document adds 0.

    ``calibration="gaussian"`` first maps each list to a standard normal distribution by optimal transport;
    ``calibration=Calibration("theoretical_min_max", lower=...)`` gives TM2C2 (Bruch, Gai & Ingber, TOIS 2023).
    Default calibration: percentile rank. Default weights: (0.7, 0.3) for two lists, else equal ones.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="linear", calibration="min_max", weights=(0.5, 0.5), k=3).row(0)
    [(0, 0.5), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "linear"
