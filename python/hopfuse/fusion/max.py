"""Maximum fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import FusionMethod, KernelOptions


@dataclass(frozen=True, kw_only=True)
class Max(FusionMethod):
    """score = the maximum of (c_l + bias_l) over the lists that hold the document.

    ``bias=(0, 1e-6)`` is the union rule of the Dice-Sørensen hybrid, max(s_vec, s_graph + 1e-6). Default calibration:
    none. It takes no weights.

    Parameters
    ----------
    bias : sequence of float, length L, optional
        Added to the scores of each list. Default: 0 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[0.5, 0.25]]), hf.Hits([[1]], [[0.5]])
    >>> hf.fuse([a, b], method="max", bias=(0.0, 0.25), k=2).row(0)
    [(1, 0.75), (0, 0.5)]
    """

    bias: Sequence[float] | None = None

    name: ClassVar[str] = "max"
    default_calibration: ClassVar[str] = "none"
    weighted: ClassVar[bool] = False

    def kernel_options(self, num_lists: int) -> KernelOptions:
        if self.bias is None:
            return {"bias": np.zeros(num_lists, np.float32)}
        bias: NDArray[np.float32] | None
        try:
            with np.errstate(over="ignore"):
                bias = np.asarray(self.bias, np.float32)
        except (TypeError, ValueError):
            bias = None
        if bias is None or bias.shape != (num_lists,) or not np.isfinite(bias).all():
            raise InputError(
                "length",
                "bias",
                "{field} is {given!r}; it must be {allowed} finite numbers, one per list",
                given=self.bias,
                allowed=num_lists,
            )
        return {"bias": bias}
