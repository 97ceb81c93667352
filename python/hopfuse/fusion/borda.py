"""The Borda count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..errors import InputError
from .base import KernelOptions, UnitWeights


@dataclass(frozen=True, kw_only=True)
class Borda(UnitWeights):
    """score = sum_l w_l points_l, with N - rank + 1 points in a union of N documents; ranks start at 1.

    Only ranks matter, so a calibration is an error. An empty list gives all documents the same. Default weights: 1 each
    (Aslam & Montague, SIGIR 2001).

    Parameters
    ----------
    missing : "mean" or "zero"
        The points of a document that a list of length n lacks: (N - n + 1)/2, the mean of the remaining points
        (BordaFuse), or 0.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]]), hf.Hits([[2]], [[1.0]])
    >>> hf.fuse([a, b], method="borda", k=3).row(0)
    [(0, 4.5), (2, 4.0), (1, 3.5)]
    """

    missing: Literal["mean", "zero"] = "mean"

    name: ClassVar[str] = "borda"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()

    def __post_init__(self) -> None:
        if self.missing not in ("mean", "zero"):
            raise InputError(
                "UNSORTED", "missing", "{field} is {given!r}; it must be 'mean' or 'zero'", given=self.missing
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"missing": self.missing == "mean"}
