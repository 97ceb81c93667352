"""The interface of a fusion method, which every file of this folder fills in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = dict[int, float]

#: Calibrations, of :func:`hopfuse.reference.calibrate`: those that give no value below 0 where there was none, and all.
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
EVERY = (*NONNEGATIVE, "z_score", "gaussian")
#: The same with min_max for their default.
MIN_MAX_FIRST = ("min_max", *(name for name in EVERY if name != "min_max"))


class ScoredList(NamedTuple):
    """One list of one query: ids (n,) in ranked order and their calibrated scores (n,)."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def no_options(num_lists: int) -> None:
    """Check nothing: the method has no options."""


@dataclass(frozen=True)
class FusionMethod:
    """A fusion method.

    Attributes
    ----------
    name : str
    score : callable(lists, weights, **options) -> {id: score}
        The method itself, for one query: its lists (each may be empty) and their weights (L,).
        Every document of the union has an entry; :func:`fuse` adds the consensus bonus and ranks.
    calibrations : tuple of str
        Those that the method accepts, its default first; empty where only ranks count.
    default_weights : callable(num_lists) -> sequence of float, or None
        None where the method takes no weights (`score` is then given ones).
    options : mapping of str to default value
    check : callable(num_lists, **options) -> None
        Raises InputError where an option's value is not allowed.
    """

    name: str
    score: Callable[..., Scores]
    calibrations: tuple[str, ...]
    default_weights: Callable[[int], Sequence[float]] | None
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[..., None] = no_options


def mixture_weights(num_lists: int) -> Sequence[float]:
    """Return PhaseGraph's (0.7, 0.3) for two lists, 1/L each otherwise."""
    return (0.7, 0.3) if num_lists == 2 else (1.0 / num_lists,) * num_lists


def unit_weights(num_lists: int) -> Sequence[float]:
    """Return 1 for every list."""
    return (1.0,) * num_lists


def is_number(value: Any, low: float, high: float) -> bool:
    """Return whether a value is a real number from low to high, and no bool.

    Examples
    --------
    >>> is_number(0.5, 0, 1), is_number(True, 0, 1), is_number(float("nan"), 0, 1)
    (True, False, False)
    """
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(low <= value <= high)


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
    """Sum of w_l * value_l over the lists that hold a document; a list that lacks it adds 0.

    The sum is the correctly rounded one: documents with the same terms in other lists tie.
    """
    terms: dict[int, list[float]] = {}
    for list_ids, list_values, weight in zip(ids, values, weights, strict=True):
        for document, value in zip(list_ids.tolist(), list_values.tolist(), strict=True):
            terms.setdefault(document, []).append(float(weight) * value)
    return {document: math.fsum(parts) for document, parts in terms.items()}
