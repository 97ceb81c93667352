"""The interface that every fusion method implements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

Scores = dict[int, float]

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
EVERY = (*NONNEGATIVE, "z_score", "gaussian")
#: All calibrations, with min_max as the default.
MIN_MAX_FIRST = ("min_max", *(name for name in EVERY if name != "min_max"))


class ScoredList(NamedTuple):
    """One list of one query: ids (n,) in ranked order and their calibrated scores (n,)."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def no_options(num_lists: int) -> None:
    """Accept a method without options."""


@dataclass(frozen=True)
class FusionMethod:
    """A fusion method.

    Attributes
    ----------
    name : str
    score : callable(lists, weights, **options) -> {id: score}
        Scores one query from its lists, each of which may be empty, and their weights (L,). Every document of the union
        has an entry; :func:`fuse` adds the consensus bonus and ranks.
    calibrations : tuple of str
        The calibrations that the method accepts, its default first; empty if it uses only ranks.
    default_weights : callable(num_lists) -> sequence of float, or None
        None if the method takes no weights; `score` is then called with ones.
    options : mapping of str to default value
    check : callable(num_lists, **options) -> None
        Raises InputError if an option is invalid.
    """

    name: str
    score: Callable[..., Scores]
    calibrations: tuple[str, ...]
    default_weights: Callable[[int], Sequence[float]] | None
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[..., None] = no_options


def mixture_weights(num_lists: int) -> Sequence[float]:
    """Return PhaseGraph's (0.7, 0.3) for two lists, else 1/L each."""
    return (0.7, 0.3) if num_lists == 2 else (1.0 / num_lists,) * num_lists


def unit_weights(num_lists: int) -> Sequence[float]:
    """Return 1 for every list."""
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
