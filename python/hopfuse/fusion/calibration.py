"""Calibrations, which map the scores of lists to a common scale, with their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import KeepsPacked, is_finite_float32, is_positive_float32, per_list

CalibrationName = Literal[
    "pit",
    "min_max",
    "max",
    "z_score",
    "l2",
    "rank",
    "theoretical_min_max",
    "three_sigma",
    "sum",
    "gaussian",
    "softmax",
    "none",
]
Ties = Literal["strict", "weak", "mean", "rank"]
CALIBRATIONS: tuple[str, ...] = get_args(CalibrationName)
TIES: tuple[str, ...] = get_args(Ties)


@dataclass(frozen=True)
class Calibration(KeepsPacked):
    """A calibration with its options, for ``hf.fuse(lists, calibration=...)``.

    :func:`hopfuse.calibrate` takes the same options as keyword arguments, and defines each calibration.

    Parameters
    ----------
    method : str
        "pit", "min_max", "max", "z_score", "l2", "rank", "theoretical_min_max", "three_sigma", "sum", "gaussian",
        "softmax" or "none".
    ties : {"strict", "weak", "mean", "rank"}, optional
        For ``pit`` only. Default: "strict".
    single, equal : float, optional
        The calibrated score of a list with one hit, and of a list with two or more equal scores. By default the method
        determines them.
    lower, upper : float or sequence of float, one per list, optional
        For ``theoretical_min_max`` only: the lowest and highest scores that a list's scorer can give, lower < upper.
        `lower` is required; by default `upper` is the highest score of the list.
    temperature : float > 0, optional
        For ``softmax`` only. Default: 1.

    Raises
    ------
    InputError
        An unknown name, an option that the calibration does not have, or a value out of range.

    Examples
    --------
    >>> import hopfuse as hf
    >>> cosine, bm25 = hf.Hits([[0, 1]], [[0.5, 0.0]]), hf.Hits([[1, 2]], [[8.0, 2.0]])
    >>> tm2c2 = hf.fusion.Calibration("theoretical_min_max", lower=(-1.0, 0.0))
    >>> hf.fuse([cosine, bm25], method="linear", calibration=tm2c2, weights=(0.5, 0.5), k=3).scores.round(4)
    array([[0.8333, 0.5   , 0.125 ]], dtype=float32)
    """

    method: str = "pit"
    ties: str | None = None
    single: float | None = None
    equal: float | None = None
    lower: float | Sequence[float] | None = None
    upper: float | Sequence[float] | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.method not in CALIBRATIONS:
            raise InputError(f"calibration is {self.method!r}; allowed: {', '.join(CALIBRATIONS)}")
        self._check_ties()
        for name in ("single", "equal"):
            value = getattr(self, name)
            if value is not None and not is_finite_float32(value):
                raise InputError(f"{name} is {value!r}; it must be a finite float32 number")
        self._check_bounds()
        self._check_temperature()

    def _check_ties(self) -> None:
        if self.ties is None:
            return
        if self.method != "pit":
            raise InputError(f"ties={self.ties!r} with calibration {self.method!r}; only 'pit' has this option")
        if self.ties not in TIES:
            raise InputError(f"ties is {self.ties!r}; allowed: {', '.join(TIES)}")

    def _check_bounds(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
            if value is not None and self.method != "theoretical_min_max":
                raise InputError(
                    f"{name}={value!r} with calibration {self.method!r}; only 'theoretical_min_max' has this option"
                )
        if self.method == "theoretical_min_max" and self.lower is None:
            raise InputError(
                "calibration 'theoretical_min_max' needs lower=, the lowest score that the scorer can give "
                "(-1 for cosine, 0 for BM25)"
            )

    def _check_temperature(self) -> None:
        if self.temperature is None:
            return
        if self.method != "softmax":
            raise InputError(
                f"temperature={self.temperature!r} with calibration {self.method!r}; only 'softmax' has this option"
            )
        if not is_positive_float32(self.temperature):
            raise InputError(f"temperature of softmax is {self.temperature!r}; it must be a float32 number above 0")

    def packed(self, num_lists: int) -> NDArray[np.float32]:
        """Return the options in the layout of calibrate.h."""
        head = [np.nan if value is None else value for value in (self.single, self.equal)]
        head.append(1.0 if self.temperature is None else self.temperature)
        bounds = np.full((num_lists, 2), np.nan, np.float32)
        if self.lower is not None:
            bounds[:, 0] = per_list(self.lower, num_lists, "lower")
        if self.upper is not None:
            bounds[:, 1] = per_list(self.upper, num_lists, "upper")
        if np.count_nonzero(bounds[:, 0] >= bounds[:, 1]):  # False for NaN
            raise InputError(
                f"lower is {self.lower!r} and upper {self.upper!r}; lower must be below upper in float32, for each list"
            )
        return np.concatenate([np.array(head, np.float32), bounds.ravel()])

    @property
    def tie_rule(self) -> str:
        """`ties`, or its default."""
        return self.ties or "strict"

    def of_list(self, at: int, num_lists: int) -> Calibration:
        """Return the calibration of list number `at` of `num_lists`.

        Examples
        --------
        >>> from hopfuse.fusion import Calibration
        >>> Calibration("theoretical_min_max", lower=(-1.0, 0.0)).of_list(1, 2).lower
        0.0
        """
        if self.lower is None:
            return self
        bounds = self.packed(num_lists)[3:].reshape(num_lists, 2)
        upper = None if self.upper is None else float(bounds[at, 1])
        return Calibration(self.method, single=self.single, equal=self.equal, lower=float(bounds[at, 0]), upper=upper)


def by_name(method: str, options: Mapping[str, Any]) -> Calibration:
    """Return a calibration with these options; without options, the same object each time."""
    if options or not isinstance(method, str):
        return Calibration(method, **options)
    return _by_default(method)


@cache
def _by_default(method: str) -> Calibration:
    return Calibration(method)
