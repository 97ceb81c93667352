"""Base classes of fusion methods, and shared checks of their options."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

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


Scores = dict[int, float]
"""The scores of a query's documents, by id."""


class ScoredList(NamedTuple):
    """One list of one query, best first: ids (n,) int64 and their calibrated scores (n,) float64."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


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
            made = self.kernel_options(num_lists)
            for value in made.values():
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
            kept[num_lists] = made  # last, since other threads use what they find here
        return kept[num_lists]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kernel_options"}


class FusionMethod(KeepsKernelOptions):
    """Base class of fusion methods, which are frozen dataclasses of their options.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> [method for method in fusion.METHODS if not fusion.METHODS[method].weighted]
    ['comb_max', 'comb_med', 'comb_min', 'gumbel', 'max']
    """

    name: ClassVar[str]
    #: The name of the kernel's method, which several methods may share. Default: ``name``. None: the formula is called.
    kernel: ClassVar[str | None]
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

    def default_weights(self, num_lists: int) -> tuple[float, ...]:
        """Return the default weights, L: PhaseGraph's (0.7, 0.3) for two lists, else 1/L each."""
        return (0.7, 0.3) if num_lists == 2 else (1.0 / num_lists,) * num_lists

    @property
    def adds_up(self) -> bool:
        """Return whether a fused score is the weighted sum of the scores from fusing each list by itself."""
        return False

    def kernel_options(self, num_lists: int) -> KernelOptions:
        """Return the fields of FusionOptions that the method's kernel reads (kernels/include/hopfuse/fusion/)."""
        return {}

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        """Return the scores of one query's documents in float64, as the method is defined.

        ``weights`` are one per list, ones if the method takes none. Every document of the union has a score; a list may
        be empty.
        """
        raise NotImplementedError


class UnitWeights(FusionMethod):
    """Base class of methods whose default weights are 1 each."""

    def default_weights(self, num_lists: int) -> tuple[float, ...]:
        return (1.0,) * num_lists


def check_nonnegative(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return calibrated scores that have an energy or a power; raise if one is negative."""
    if (scores < 0).any():
        raise InputError(
            "range",
            "calibration",
            "a calibrated score is {given}; it must be at least {allowed}: use {field} 'pit', 'min_max' or 'rank'",
            given=float(scores.min()),
            allowed=0,
        )
    return scores


def values_of(ids: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]]) -> dict[int, dict[int, float]]:
    """Return {document: {list: value}} over the union, lists in order.

    Examples
    --------
    >>> import numpy as np
    >>> values_of([np.array([4, 2]), np.array([2])], [np.array([1.0, 0.5]), np.array([3.0])])
    {4: {0: 1.0}, 2: {0: 0.5, 1: 3.0}}
    """
    found: dict[int, dict[int, float]] = {}
    for number, (list_ids, list_values) in enumerate(zip(ids, values, strict=True)):
        for document, value in zip(list_ids.tolist(), list_values.tolist(), strict=True):
            found.setdefault(document, {})[number] = value
    return found


def weighted_sum(ids: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]], weights: Any) -> Scores:
    """Return the sum of w_l * value_l over the lists that hold a document.

    The sum is correctly rounded, so documents with the same terms in different lists tie.
    """
    terms: dict[int, list[float]] = {}
    for list_ids, list_values, weight in zip(ids, values, weights, strict=True):
        for document, value in zip(list_ids.tolist(), list_values.tolist(), strict=True):
            terms.setdefault(document, []).append(float(weight) * value)
    return {document: math.fsum(parts) for document, parts in terms.items()}


def weighted_product(
    lists: Sequence[ScoredList], values: Sequence[NDArray[np.float64]], weights: Any, epsilon: float
) -> Scores:
    """Return the product of (value_l + epsilon)^w_l; a list that lacks the document has value 0."""
    scores = {}
    for document, own in values_of([one.ids for one in lists], values).items():
        logs = [math.log(own.get(number, 0.0) + epsilon) for number in range(len(lists))]
        scores[document] = math.exp(math.fsum(float(w) * log for w, log in zip(weights, logs, strict=True)))
    return scores


def held_by(lists: Sequence[ScoredList]) -> dict[int, int]:
    """Return the number of lists that hold each document of the union.

    Examples
    --------
    >>> import numpy as np
    >>> held_by([ScoredList(np.array([4, 2]), np.zeros(2)), ScoredList(np.array([2]), np.zeros(1))])
    {4: 1, 2: 2}
    """
    return dict(Counter(document for one in lists for document in one.ids.tolist()))
