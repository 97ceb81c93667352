"""Checks that several statistics share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError


def check_confidence(confidence: float) -> None:
    """Refuse a coverage that is no probability between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; it must lie between 0 and 1, e.g. 0.95")


def check_counts(wins: int, losses: int) -> None:
    """Refuse negative counts of discordant queries."""
    if wins < 0 or losses < 0:
        raise InputError(f"wins is {wins} and losses is {losses}; both are counts, at least 0")


def check_resamples(resamples: int) -> None:
    """Refuse a number of resamples below 1."""
    if resamples < 1:
        raise InputError(f"resamples is {resamples}; it must be at least 1, e.g. 10000")


def chosen_rows(rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """The positions that ``rows`` names among ``count``: positions, or a mask."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (count,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"rows is {rows!r}; give positions of queries, or a mask of shape ({count},)")
    if given.size and not (given.min() >= 0 and given.max() < count):
        raise InputError(f"rows are {given.min()} .. {given.max()}; there are the queries 0 .. {count - 1}")
    return given.astype(np.int64)


def finite_values(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A float64 array of shape (B,), B at least 1, without NaN and infinity."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise InputError(
            f"{name} has shape {array.shape} and {int((~np.isfinite(array)).sum())} entries that are not finite; "
            "give one finite number per query, at least one (leave out queries where a metric is NaN)"
        )
    return array
