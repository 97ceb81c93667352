"""Convert filters of rows or nodes to the form that backends take."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import filters
from .._arrays.rows import indptr_of_counts
from ..backends.calls import RowFilter
from ._captured import refuse_per_query


def read_filter(given: Any, batch: int, n: int, name: str) -> RowFilter:
    """Return the selected rows among n; None selects all.

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
    return RowFilter(indptr=indptr_of_counts([row.size for row in ids]), ids=np.concatenate(ids), shared=False)
