"""``allow`` of searches over an index: filters by metadata, ids of passages or masks, read as masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._arrays.filters import is_per_query, read_filter
from .._validation import wrong_array, wrong_type
from ..errors import InputError
from .filters import Where, valid_at
from .parts.metadata import Metadata


class Passages(Protocol):
    """What is read of an index."""

    @property
    def num_passages(self) -> int: ...
    @property
    def metadata(self) -> Metadata: ...
    def rows_of(self, ids: Iterable[Any]) -> NDArray[np.int64]: ...


def read_allow(index: Passages, allow: Any, batch: int) -> NDArray[np.bool_]:
    """Return the passages that each question may find: (1, P) if all may find the same, else (B, P).

    Parameters
    ----------
    index : Index
    allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these or None, which allows all passages
    batch : int
        B.

    Raises
    ------
    InputError
        Another shape, another number of filters than questions, or an id that no passage has.
    """
    if _is_one_each(allow):
        every = np.ones(index.num_passages, np.bool_)
        allow = [every if one is None else _mask_or_rows(index, one, f"allow[{b}]") for b, one in enumerate(allow)]
    else:
        allow = _mask_or_rows(index, allow, "allow")
    return read_filter(allow, batch, index.num_passages, "allow").to_masks(index.num_passages)


def valid_too(index: Passages, allow: Any, at: Any, batch: int) -> Any:
    """Return ``allow`` of a search of B questions without the passages that are not valid at a time.

    Parameters
    ----------
    index : Index
    allow : optional
        As of :func:`read_allow`; None allows all passages.
    at : datetime, np.datetime64, str, int or float
        See :meth:`hopfuse.Index.valid_at`.
    batch : int
        B.
    """
    valid = valid_at(index.metadata, at)
    if allow is None or isinstance(allow, Where):
        return valid if allow is None else allow & valid
    masks = read_allow(index, allow, batch) & valid.mask(index.metadata)
    return masks if len(masks) > 1 else masks[0]


def read_mask(index: Passages, allow: Any) -> NDArray[np.bool_]:
    """Return the passages, bool (P,), that one filter allows: see :func:`read_allow`."""
    given, size = _mask_or_rows(index, allow, "allow"), index.num_passages
    return given if isinstance(allow, Where) else read_filter(given, 1, size, "allow").to_masks(size)[0]


def _is_one_each(allow: Any) -> bool:
    """Return whether a filter is a sequence of filters, one for each question."""
    if not isinstance(allow, Sequence) or isinstance(allow, str) or not len(allow):
        return False
    first = next((one for one in allow if one is not None), None)
    return first is None or isinstance(first, Where) or is_per_query([first])


def _mask_or_rows(index: Passages, given: Any, name: str) -> NDArray[Any]:
    """Return the mask of a filter, the rows of ids, and anything else as an array, which is checked later."""
    if isinstance(given, Where):
        return given.mask(index.metadata)
    if isinstance(given, str | Mapping):
        raise wrong_type(given, name, "a list of passage ids, a mask, or hopfuse.where(**conditions)")
    has_text = isinstance(given, Sequence) and any(isinstance(one, str) for one in given)
    ids = given if has_text else to_numpy(given, name)
    if isinstance(ids, np.ndarray) and ids.ndim > 1 and ids.dtype.kind in "iu":  # rows and ids would be mistaken
        raise wrong_array(ids, name, "one list of passage ids for all questions, B such lists, or a mask")
    if isinstance(ids, np.ndarray) and (ids.size == 0 or ids.ndim != 1 or ids.dtype.kind not in "iuUO"):
        return ids
    try:
        return index.rows_of(ids)
    except InputError as error:
        raise InputError(
            "unknown",
            name,
            "{field} has {given!r}, the id of no passage; ids are of the type {kind}, and rows are allowed by a "
            "mask of shape ({size},)",
            **error.values,
            size=index.num_passages,
        ) from None
