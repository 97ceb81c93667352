"""What the types that hold compressed rows have in common: an indptr, and values that ascend within a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def checked_count(value: Any, name: str, most: int) -> int:
    """A whole number from 0 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= most:
        raise InputError(f"{name} is {value!r}; it must be a whole number from 0 to {most}")
    return int(value)


def check_array(array: Any, name: str, dtype: Any) -> None:
    """One dimension of a dtype, as a kernel reads it in place."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        raise InputError(f"{name} must be an array of {np.dtype(dtype)} with one dimension")
    if not array.flags.c_contiguous:
        raise InputError(f"{name} is not contiguous; pass np.ascontiguousarray of it")
    if not array.flags.aligned:
        raise InputError(f"{name} is not aligned in memory; pass a copy of it")


def check_indptr(indptr: NDArray[Any], entries: int) -> None:
    """Where rows begin and end: from 0 to the number of entries."""
    if not indptr.size or indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
        raise InputError(f"indptr does not ascend from 0 to {entries}")


def ascends(values: NDArray[Any], indptr: NDArray[Any]) -> bool:
    """Whether the values of every row ascend strictly."""
    falls = np.flatnonzero(values[1:] <= values[:-1]) + 1
    return bool(np.isin(falls, indptr).all())


def indptr_of(rows: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Where each of ``count`` rows begins and ends, of entries that say their row."""
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=indptr[1:])
    return indptr
