"""Arguments that several operations take: hits, filters, and options per query, which a captured core refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import filters
from .._arrays.rows import indptr_of_counts
from .._validation import check_type
from ..backends.calls.dense import RowFilter
from ..errors import InputError
from ..types import Hits

# ---- Captured cores, which must work for any batch -------------------------------------------------------------------

_thread = threading.local()


def in_captured_core() -> bool:
    """Return whether a captured core runs on this thread."""
    return getattr(_thread, "depth", 0) > 0


def track_core(core: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a core so that :func:`in_captured_core` is true on its thread while it runs."""

    @wraps(core)
    def run(*arrays: Any) -> Any:
        _thread.depth = getattr(_thread, "depth", 0) + 1
        try:
            return core(*arrays)
        finally:
            _thread.depth -= 1

    return run


def refuse_per_query(name: str) -> None:
    """Raise if an option is given per query inside a captured core, which is replayed for other batches."""
    if in_captured_core():
        raise InputError(
            "unsupported",
            name,
            "{field} is given per query inside a captured core, which must work for any batch; give one value for all "
            "queries, or call the op without capture",
        )


# ---- Filters ---------------------------------------------------------------------------------------------------------

_ALL = RowFilter()


def read_filter(given: Any, batch: int, n: int, name: str) -> RowFilter:
    """Return the selected rows among n; None selects all.

    Parameters
    ----------
    given : bool (N,) or (B, N), ids (m,), or a sequence of B id lists or masks, optional
    """
    if given is None:
        return _ALL
    if filters.is_per_query(given) or len(getattr(given, "shape", ())) == 2:
        refuse_per_query(name)
    masks, ids, per_query = filters.read_filter(given, batch, n, name)
    if masks is not None:
        mask = np.ascontiguousarray(masks if per_query else masks[0])
        return RowFilter(mask=mask.view(np.uint8), shared=not per_query)
    if not per_query:
        return RowFilter(None, np.array([0, ids[0].size], np.int64), ids[0])
    return RowFilter(indptr=indptr_of_counts([row.size for row in ids]), ids=np.concatenate(ids), shared=False)


# ---- Hits ------------------------------------------------------------------------------------------------------------


def check_hits(hits: Any, field: str = "hits") -> Hits:
    """Return Hits."""
    checked: Hits = check_type(hits, field, Hits, "Hits: hf.Hits(ids, scores)")
    return checked


def check_inside(ids: NDArray[np.int64], counts: NDArray[np.int64], size: int, owner: str) -> None:
    """Raise unless the ids of all hits number one of ``size`` entries of ``owner``, such as the nodes of a graph."""
    outside = (ids >= size) & (np.arange(ids.shape[1]) < counts[:, None])
    if outside.any():
        row, at = map(int, np.argwhere(outside)[0])
        raise InputError(
            "unknown",
            f"hits[{row}]",
            "{field} has the id {given}; {owner} are {allowed}",
            given=int(ids[row, at]),
            owner=owner,
            allowed=f"0 .. {size - 1}",
        )
