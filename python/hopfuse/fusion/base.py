"""Base classes of fusion methods, and shared checks of their options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import check_auto, check_length, check_number
from ..errors import InputError

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


def check_temperature(value: Any) -> float:
    """Check a temperature and return it as kernels read it: 0 means "auto"."""
    return check_auto(value, "temperature", above=0, float32=True) or 0.0


def check_epsilon(value: Any) -> None:
    check_number(value, "epsilon", above=0, float32=True)


def refuse_options(options: Iterable[str], chosen: Any) -> None:
    """Raise if options are given beside an object that has its own."""
    names = sorted(options)
    if names:
        raise InputError(
            "conflict",
            names[0],
            "{names:@} cannot be given beside {given!r}, which has its own options; set them there",
            names=names,
            given=chosen,
        )


def per_list(value: Any, num_lists: int, name: str, **limits: Any) -> NDArray[np.float32]:
    """Return one number for all lists, or one per list, as an array of shape (L,); ``limits`` as in ``check_number``.

    Examples
    --------
    >>> from hopfuse.fusion.base import per_list
    >>> per_list(0.5, 2, "q"), per_list((1.0, 2.0), 2, "q")
    (array([0.5, 0.5], dtype=float32), array([1., 2.], dtype=float32))
    """
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return np.full(num_lists, check_number(value, name, float32=True, **limits), np.float32)
    if len(value) != 1:
        check_length(len(value), name, num_lists, "list")
    numbers = [check_number(number, f"{name}[{at}]", float32=True, **limits) for at, number in enumerate(value)]
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
