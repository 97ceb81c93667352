"""Base classes of fusion methods, and shared checks of their options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import REAL
from ..errors import InputError

FLOAT32_MAX = float(np.finfo(np.float32).max)

#: Calibrations that give no negative values for scores that are at least 0.
NONNEGATIVE = (
    "pit",
    "min_max",
    "max",
    "l2",
    "rank",
    "theoretical_min_max",
    "three_sigma",
    "sum",
    "softmax",
    "none",
)


def is_finite_float32(value: Any) -> bool:
    """Return whether a value is a real number, not a bool, that float32 can hold."""
    number = isinstance(value, REAL) and not isinstance(value, bool)
    return number and bool(abs(value) <= FLOAT32_MAX)  # also correct for an int of any size


def is_positive_float32(value: Any) -> bool:
    """Return whether a value is a real number above 0, not a bool, that float32 can hold."""
    return is_finite_float32(value) and bool(np.float32(value) > 0)


def check_temperature(value: Any) -> float:
    """Check a temperature and return it as kernels read it: 0 means "auto"."""
    if isinstance(value, str) and value == "auto":
        return 0.0
    if not is_positive_float32(value):
        raise InputError(
            "UNSORTED", None, "temperature is {given!r}; it must be 'auto' or a float32 number above 0", given=value
        )
    return float(value)


def check_epsilon(value: Any) -> None:
    if not is_positive_float32(value):
        raise InputError("type", None, "epsilon is {given!r}; it must be a float32 number above 0", given=value)


def per_list(value: Any, num_lists: int, name: str) -> NDArray[np.float32]:
    """Return one number for all lists, or one per list, as an array of shape (L,).

    Examples
    --------
    >>> from hopfuse.fusion.base import per_list
    >>> per_list(0.5, 2, "q"), per_list((1.0, 2.0), 2, "q")
    (array([0.5, 0.5], dtype=float32), array([1., 2.], dtype=float32))
    """
    numbers = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]
    if not all(is_finite_float32(number) for number in numbers) or len(numbers) not in (1, num_lists):
        raise InputError(
            "length",
            name,
            "{field} is {given!r}; it must be a finite float32 number, or {num_lists} of them, one per list",
            given=value,
            num_lists=num_lists,
        )
    return np.full(num_lists, numbers, np.float32)


#: Numbers and float32 arrays, by the names of the fields of a kernel's struct.
KernelOptions = dict[str, float | NDArray[np.float32]]


class KeepsKernelOptions:
    """Base of frozen option objects, which are converted for kernels once per number of lists."""

    def kernel_options(self, num_lists: int) -> KernelOptions:
        """Return the options as fields of the kernels' struct, by name."""
        raise NotImplementedError

    @cached_property
    def _kernel_options(self) -> dict[int, KernelOptions] | None:
        """The results by number of lists; None if an option is unhashable, such as a list, which may change."""
        try:
            hash(self)
        except TypeError:
            return None
        return {}

    def kernel_options_once(self, num_lists: int) -> KernelOptions:
        """Return :meth:`kernel_options`, cached."""
        kept = self._kernel_options
        if kept is None:
            return self.kernel_options(num_lists)
        if num_lists not in kept:
            kept[num_lists] = self.kernel_options(num_lists)
            for value in kept[num_lists].values():
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
        return kept[num_lists]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kernel_options"}


class FusionMethod(KeepsKernelOptions):
    """Base class of fusion methods, which are frozen dataclasses of their options.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> [method for method in fusion.METHODS if not fusion.METHODS[method].weighted]
    ['max', 'comb_min', 'comb_max', 'comb_med', 'gumbel']
    """

    name: ClassVar[str]
    #: The name of the kernel's method, which several methods may share. Default: ``name``.
    kernel: ClassVar[str]
    #: The calibration to use if none is given.
    default_calibration: ClassVar[str] = "pit"
    #: The calibrations that the method accepts; None: all; (): none, because only ranks count.
    calibrations: ClassVar[tuple[str, ...] | None] = None
    #: Whether negative calibrated scores are an error.
    needs_nonnegative: ClassVar[bool] = False
    #: Whether the method takes weights.
    weighted: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls) and "kernel" not in vars(cls):
            cls.kernel = cls.name

    def default_weights(self, num_lists: int) -> NDArray[np.float32]:
        """Return the default weights, (L,): PhaseGraph's (0.7, 0.3) for two lists, else 1/L each."""
        return np.array([0.7, 0.3] if num_lists == 2 else [1.0 / num_lists] * num_lists, np.float32)

    def kernel_options(self, num_lists: int) -> KernelOptions:
        """Return the fields of FusionOptions that the method's kernel reads (kernels/include/hopfuse/fusion/)."""
        return {}


class UnitWeights(FusionMethod):
    """Base class of methods whose default weights are 1 each."""

    def default_weights(self, num_lists: int) -> NDArray[np.float32]:
        return np.ones(num_lists, np.float32)
