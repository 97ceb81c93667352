"""Rows or nodes that a call is restricted to: a mask or ids, for all queries or for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays.convert import to_numpy
from .._validation import check_ids, is_per_query, mask_or_ids
from ..backends.calls import RowFilter
from ..errors import InputError
from ._captured import refuse_per_query


def read_filter(given: Any, batch: int, n: int, name: str) -> RowFilter:
    """Return what is selected of n rows: nothing given selects all.

    Parameters
    ----------
    given : bool (N,) or (B, N), ids (m,), or a sequence of B id lists or masks, optional
    """
    if given is None:
        return RowFilter()
    if is_per_query(given):
        refuse_per_query(name)
        rows = [to_numpy(row, f"{name}[{b}]") for b, row in enumerate(given)]
        if len(rows) != batch:
            raise InputError(f"{name} has {len(rows)} lists for {batch} queries; give one for each query")
        if any(row.dtype == np.bool_ for row in rows):
            if {row.shape for row in rows} != {(n,)}:
                raise InputError(f"{name} mixes masks of shapes {[row.shape for row in rows]}; each must be ({n},)")
            return read_filter(np.stack(rows), batch, n, name)
        lists = [check_ids(row, n, f"{name}[{b}]") for b, row in enumerate(rows)]
        indptr = np.zeros(batch + 1, np.int64)
        np.cumsum([len(ids) for ids in lists], out=indptr[1:])
        return RowFilter(indptr=indptr, ids=np.concatenate(lists), shared=False)
    mask, ids = mask_or_ids(to_numpy(given, name), n, name)
    if mask is not None:
        if mask.ndim == 2:
            refuse_per_query(name)
        if mask.shape not in ((n,), (batch, n)):
            raise InputError(f"{name} is a mask of shape {mask.shape}; it must be ({n},) or ({batch}, {n})")
        return RowFilter(mask=np.ascontiguousarray(mask).view(np.uint8), shared=mask.ndim == 1)
    assert ids is not None
    return RowFilter(None, np.array([0, ids.size], np.int64), ids)
