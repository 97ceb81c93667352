"""The Comb family of Fox & Shaw, TREC-2 1993."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import InputError
from .base import FusionMethod, KernelOptions, UnitWeights, is_finite_float32


@dataclass(frozen=True, kw_only=True)
class CombSum(UnitWeights):
    """score = sum_l w_l c_l over the lists that hold the document: :class:`Linear` with other defaults.

    Default calibration: min_max. Default weights: 1 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_sum", k=3).row(0)
    [(0, 1.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_sum"
    kernel: ClassVar[str] = "linear"
    default_calibration: ClassVar[str] = "min_max"


@dataclass(frozen=True, kw_only=True)
class CombMNZ(UnitWeights):
    """score = h^gamma sum_l w_l c_l over the h lists that hold the document.

    A list counts in h whatever its score. Default calibration: min_max. Default weights: 1 each.

    Parameters
    ----------
    gamma : float
        In [-16, 16]; 1 in the paper. Other values give CombGMNZ (Lee, SIGIR 1997).

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_mnz", k=3).row(0)
    [(1, 2.0), (0, 1.0), (2, 0.0)]
    """

    gamma: float = 1.0

    name: ClassVar[str] = "comb_mnz"
    default_calibration: ClassVar[str] = "min_max"

    def __post_init__(self) -> None:
        if not is_finite_float32(self.gamma) or not -16 <= self.gamma <= 16:
            raise InputError(
                "range", "gamma", "{field} is {given!r}; it must be a number in [-16, 16]", given=self.gamma
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        held = np.arange(1, num_lists + 1, dtype=np.float64)
        with np.errstate(over="ignore"):
            factors = np.concatenate([[0.0], held**self.gamma]).astype(np.float32)
        if not np.isfinite(factors).all():
            raise InputError(
                "UNSORTED",
                "gamma",
                "{field} is {given!r}; {num_lists} to that power overflows float32: use a smaller gamma",
                given=self.gamma,
                num_lists=num_lists,
            )
        return {"by_holders": factors}


@dataclass(frozen=True, kw_only=True)
class CombANZ(UnitWeights):
    """score = (sum_l w_l c_l) / h over the h lists that hold the document.

    Default calibration: min_max. Default weights: 1 each.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_anz", k=3).row(0)
    [(0, 1.0), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_anz"
    default_calibration: ClassVar[str] = "min_max"


@dataclass(frozen=True, kw_only=True)
class WMNZ(UnitWeights):
    """score = (sum_l c_l) (sum_l w_l) over the lists that hold the document (Wu & Crestani, CIKM 2002).

    Default calibration: min_max. Default weights: 1 each, with which it equals CombMNZ.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="wmnz", weights=[2.0, 1.0], k=3).row(0)
    [(1, 3.0), (0, 2.0), (2, 0.0)]
    """

    name: ClassVar[str] = "wmnz"
    default_calibration: ClassVar[str] = "min_max"


@dataclass(frozen=True, kw_only=True)
class CombMin(FusionMethod):
    """score = the minimum of c_l over the lists that hold the document.

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_min", k=3).row(0)
    [(0, 1.0), (1, 0.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_min"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class CombMax(FusionMethod):
    """score = the maximum of c_l over the lists that hold the document: :class:`Max` without a bias.

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_max", k=3).row(0)
    [(0, 1.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_max"
    kernel: ClassVar[str] = "max"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False

    def kernel_options(self, num_lists: int) -> KernelOptions:
        return {"bias": np.zeros(num_lists, np.float32)}


@dataclass(frozen=True, kw_only=True)
class CombMed(FusionMethod):
    """score = the median of c_l over the lists that hold the document (of an even number, the mean of the middle two).

    Default calibration: min_max. It takes no weights.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method="comb_med", k=3).row(0)
    [(0, 1.0), (1, 0.5), (2, 0.0)]
    """

    name: ClassVar[str] = "comb_med"
    default_calibration: ClassVar[str] = "min_max"
    weighted: ClassVar[bool] = False
