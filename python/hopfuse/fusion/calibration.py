"""Calibrations, which map the scores of lists to a common scale, with their options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np

from ..errors import InputError
from .base import KeepsKernelOptions, KernelOptions, is_finite_float32, is_positive_float32, per_list

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
class Calibration(KeepsKernelOptions):
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
            raise InputError(
                "choice",
                None,
                "calibration is {given!r}; allowed: {allowed}",
                given=self.method,
                allowed=", ".join(CALIBRATIONS),
            )
        self._check_ties()
        for name in ("single", "equal"):
            value = getattr(self, name)
            if value is not None and not is_finite_float32(value):
                raise InputError("type", name, "{field} is {given!r}; it must be a finite float32 number", given=value)
        self._check_bounds()
        self._check_temperature()

    def _check_ties(self) -> None:
        if self.ties is None:
            return
        if self.method != "pit":
            raise InputError(
                "UNSORTED",
                None,
                "ties={ties!r} with calibration {method!r}; only 'pit' has this option",
                ties=self.ties,
                method=self.method,
            )
        if self.ties not in TIES:
            raise InputError(
                "choice", "ties", "{field} is {given!r}; allowed: {allowed}", given=self.ties, allowed=", ".join(TIES)
            )

    def _check_bounds(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
            if value is not None and self.method != "theoretical_min_max":
                raise InputError(
                    "UNSORTED",
                    None,
                    "{name}={value!r} with calibration {method!r}; only 'theoretical_min_max' has this option",
                    name=name,
                    value=value,
                    method=self.method,
                )
        if self.method == "theoretical_min_max" and self.lower is None:
            raise InputError(
                "missing",
                None,
                "calibration 'theoretical_min_max' needs {@lower}, the lowest score that the scorer can give "
                "(-1 for cosine, 0 for BM25)",
            )

    def _check_temperature(self) -> None:
        if self.temperature is None:
            return
        if self.method != "softmax":
            raise InputError(
                "UNSORTED",
                None,
                "temperature={temperature!r} with calibration {method!r}; only 'softmax' has this option",
                temperature=self.temperature,
                method=self.method,
            )
        if not is_positive_float32(self.temperature):
            raise InputError(
                "type",
                "temperature",
                "{field} of softmax is {given!r}; it must be a float32 number above 0",
                given=self.temperature,
            )

    def kernel_options(self, num_lists: int) -> KernelOptions:
        """Return the numbers of CalibrationRule (kernels/include/hopfuse/calibrate.h)."""
        lower, upper = (
            np.full(num_lists, np.nan, np.float32) if value is None else per_list(value, num_lists, name)
            for name, value in (("lower", self.lower), ("upper", self.upper))
        )
        if np.count_nonzero(lower >= upper):  # False for NaN
            raise InputError(
                "UNSORTED",
                "lower",
                "{field} is {given!r} and upper {upper!r}; lower must be below upper in float32, for each list",
                given=self.lower,
                upper=self.upper,
            )
        single, equal = (math.nan if value is None else value for value in (self.single, self.equal))
        temperature = 1.0 if self.temperature is None else self.temperature
        return {"single": single, "equal": equal, "temperature": temperature, "lower": lower, "upper": upper}

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
        lower, upper = (
            None if value is None else float(per_list(value, num_lists, name)[at])
            for name, value in (("lower", self.lower), ("upper", self.upper))
        )
        return Calibration(self.method, single=self.single, equal=self.equal, lower=lower, upper=upper)


def by_name(method: str, options: Mapping[str, Any]) -> Calibration:
    """Return a calibration with these options; without options, the same object each time."""
    if options or not isinstance(method, str):
        return Calibration(method, **options)
    return _by_default(method)


@cache
def _by_default(method: str) -> Calibration:
    return Calibration(method)
