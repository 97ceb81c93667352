"""Rows or nodes that a call is restricted to, as backends take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import filters
from ..backends.calls import RowFilter
from ._captured import refuse_per_query


def read_filter(given: Any, batch: int, n: int, name: str) -> RowFilter:
    """Return what is selected of n rows: nothing given selects all.

    Parameters
    ----------
    given : bool (N,) or (B, N), ids (m,), or a sequence of B id lists or masks, optional
    """
    if given is None:
        return RowFilter()
    if filters.is_per_query(given) or len(getattr(given, "shape", ())) == 2:
        refuse_per_query(name)
    masks, ids, per_query = filters.read_filter(given, batch, n, name)
    if masks is not None:
        mask = np.ascontiguousarray(masks if per_query else masks[0])
        return RowFilter(mask=mask.view(np.uint8), shared=not per_query)
    if not per_query:
        return RowFilter(None, np.array([0, ids[0].size], np.int64), ids[0])
    indptr = np.zeros(batch + 1, np.int64)
    np.cumsum([len(row) for row in ids], out=indptr[1:])
    return RowFilter(indptr=indptr, ids=np.concatenate(ids), shared=False)
