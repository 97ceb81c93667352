"""Checks that several operations share; each is linear in the call's own input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

#: As many as a graph can have nodes.
MAX_K = 2**31 - 1


def check_k(k: Any) -> int:
    """k as an int >= 0."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= MAX_K:
        raise InputError(f"k is {k!r}; it must be a whole number, at least 0 and at most {MAX_K}")
    return int(k)


def check_whole(value: Any, name: str, most: int = MAX_K) -> int:
    """A whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise InputError(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return int(value)


def is_real(number: Any) -> bool:
    """Whether something is one number that a float can hold, of Python's or NumPy's types; a truth value is none."""
    if not isinstance(number, int | float | np.integer | np.floating) or isinstance(number, bool):
        return False
    try:
        float(number)
    except OverflowError:
        return False
    return True


def check_real(array: NDArray[Any], name: str) -> None:
    """Refuse dtypes that are not numbers."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {array.dtype}; it must hold real numbers")


def mask_or_ids(value: Any, size: int, name: str) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
    """A boolean mask of ``size`` (over the last axis), or ascending unique ids below ``size``."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        if array.shape[-1:] != (size,):
            raise InputError(f"{name} is a mask of shape {array.shape}; its last axis must have {size} entries")
        return array, None
    return None, check_ids(array, size, name)


def check_ids(array: NDArray[Any], size: int, name: str) -> NDArray[np.int64]:
    """Ascending unique int64 ids in 0 .. size - 1."""
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} is {array.dtype}{array.shape}; it must be a one-dimensional list of ids, or a bool mask"
        )
    ids = np.ascontiguousarray(array, np.int64)
    if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
        ids = np.unique(ids)
    if ids.size and (ids[0] < 0 or ids[-1] >= size):
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(f"{name} has id {wrong}; ids are 0 .. {size - 1}")
    return ids
