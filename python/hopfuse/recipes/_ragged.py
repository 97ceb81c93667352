"""Entries of some of the rows of compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def entries_of(
    indptr: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The values of these rows, one row after the other, and how many each has.

    Examples
    --------
    >>> import numpy as np
    >>> entries_of(np.array([0, 2, 3]), np.array([7, 8, 9]), np.array([1, 0]))
    (array([9, 7, 8]), array([1, 2]))
    """
    begin, count = indptr[rows], indptr[rows + 1] - indptr[rows]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return values[np.repeat(begin, count) + within], count
