"""Filters of rows: masks or ids, for all queries or per query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_ids, check_length, wrong_array
from ..errors import InputError
from .convert import to_numpy
from .distinct import distinct

#: Stands for no id in the rows of an array.
_PADDING = -1


class Filter(NamedTuple):
    """Masks of shape (1, size) or (B, size), or 1 or B lists of ascending unique ids."""

    masks: NDArray[np.bool_] | None
    ids: list[NDArray[np.int64]]
    per_query: bool

    def to_masks(self, size: int) -> NDArray[np.bool_]:
        """Return one mask for all queries, (1, size), or one per query, (B, size)."""
        if self.masks is not None:
            return self.masks
        masks = np.zeros((len(self.ids), size), np.bool_)
        for mask, ids in zip(masks, self.ids, strict=True):
            mask[ids] = True
        return masks


def is_per_query(given: Any) -> bool:
    """Return whether a filter is a sequence of id lists or masks, one per query."""
    several = isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0
    return several and hasattr(given[0], "__len__") and not isinstance(given[0], str)


def read_filter(given: Any, batch: int, size: int, name: str) -> Filter:
    """Read a filter of ``size`` rows for a batch of queries.

    Parameters
    ----------
    given : bool (size,) or (B, size), ids (m,) or (B, m), or a sequence of B id lists or masks
        -1 in an array of ids (B, m) is padding, as in the ids of Hits.

    Raises
    ------
    InputError
        Another shape, another number of queries, ids outside 0 .. size - 1.
    """
    if is_per_query(given):
        check_length(len(given), name, batch, "query")
        rows = [_read(to_numpy(row, f"{name}[{b}]"), None, size, f"{name}[{b}]") for b, row in enumerate(given)]
        if any(row.masks is not None for row in rows):
            return Filter(np.concatenate([row.to_masks(size) for row in rows]), [], True)
        return Filter(None, [row.ids[0] for row in rows], True)
    return _read(to_numpy(given, name), batch, size, name)


def _read(array: NDArray[Any], batch: int | None, size: int, name: str) -> Filter:
    """Read a shared mask, one mask per query, or ids; if ``batch`` is given, also ids per query."""
    if array.dtype != np.bool_:
        if batch is not None and array.ndim == 2 and array.dtype.kind in "iu":
            check_length(len(array), name, batch, "query")
            return Filter(
                None, [_check_ids(row[row != _PADDING], size, f"{name}[{b}]") for b, row in enumerate(array)], True
            )
        return Filter(None, [_check_ids(array, size, name)], False)
    if array.shape not in ((size,), (batch, size)):
        allowed = f"({size},)" if batch is None else f"({size},) or ({batch}, {size})"
        raise wrong_array(array, name, f"a mask of the shape {allowed}")
    per_query = array.ndim == 2
    return Filter(array if per_query else array[None], [], per_query)


def _check_ids(array: NDArray[Any], size: int, name: str) -> NDArray[np.int64]:
    """Return ascending unique int64 ids in 0 .. size - 1."""
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise wrong_array(array, name, "a list of ids, one of shape (B, m) for B queries, or a bool mask")
    if array.dtype == np.uint64:
        check_ids(array, name, size)
    ids = np.ascontiguousarray(array, np.int64)
    if np.count_nonzero(ids[1:] <= ids[:-1]):
        ids = distinct(ids)
    if ids.size and (ids[0] < 0 or ids[-1] >= size):
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(
            "unknown", name, "{field} has the id {given}; ids are 0 .. {last}", given=int(wrong), last=size - 1
        )
    return ids
