"""Weighted reciprocal rank fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..errors import InputError
from .base import KernelOptions, UnitWeights, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class RRF(UnitWeights):
    """score = sum_l w_l / (k + rank_l) over the lists that hold the document; ranks start at 1.

    Only ranks matter, so a calibration is an error. Default weights: 1 each. If only one list is not empty, the fused
    order is its order. A bonus for documents that match the query exactly can be given as one more list, whose weight
    is the bonus at rank 1 times ``rank_constant + 1``.

    Parameters
    ----------
    rank_constant : float >= 0
        The paper's k. Default: 60 (Cormack, Clarke & Buettcher, SIGIR 2009).

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.fuse([hf.Hits([[4, 2]], [[1.0, 0.5]])], method="rrf", rank_constant=1, k=2).row(0)
    [(4, 0.5), (2, 0.3333333432674408)]
    """

    rank_constant: float = 60.0

    name: ClassVar[str] = "rrf"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        k = self.rank_constant
        if not is_finite_float32(k) or k < 0:
            raise InputError(
                "range",
                "rank_constant",
                "{field} is {given!r}; it must be a finite float32 number, at least 0",
                given=k,
            )
        object.__setattr__(self, "rank_constant", float(k))

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"rank_constant": self.rank_constant}
