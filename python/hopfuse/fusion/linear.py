"""Linear fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import FusionMethod


@dataclass(frozen=True, kw_only=True)
class Linear(FusionMethod):
    """score = sum_l w_l c_l over calibrated scores; a list that lacks the document adds 0.

    Default calibration: percentile rank. Default weights: (0.7, 0.3) for two lists, equal ones otherwise.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="linear", calibration="min_max", weights=(0.5, 0.5), k=3).row(0)
    [(0, 0.5), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "linear"

    def default_weights(self, num_lists: int) -> NDArray[np.float32]:
        return np.array([0.7, 0.3], np.float32) if num_lists == 2 else super().default_weights(num_lists)
