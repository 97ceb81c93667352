"""Checks of arguments that every room shares; each is linear in its own input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

#: As many as a graph can have nodes.
MAX_WHOLE = 2**31 - 1
#: Threads of a call.
MAX_THREADS = 1024
#: Types of a whole number, and of any.
WHOLE = (int, np.integer)
REAL = (int, float, np.integer, np.floating)


def check_k(k: Any) -> int:
    """Return k as an int, at least 0; it may be larger than any list."""
    if isinstance(k, bool) or not isinstance(k, WHOLE) or k < 0:
        raise InputError(f"k is {k!r}; it must be a whole number, at least 0")
    return int(k)


def check_whole(value: Any, name: str, most: int = MAX_WHOLE) -> int:
    """Return a whole number from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, WHOLE) or not 1 <= value <= most:
        raise InputError(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return int(value)


def is_real(number: Any) -> bool:
    """Return whether something is one number, of Python's or NumPy's types, that a float can hold; bool is none."""
    if not isinstance(number, REAL) or isinstance(number, bool):
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


def checked_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return the texts as a list; refuse a bare string, and anything in them that is not one."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"{name} is one {type(texts).__name__}; pass a list of strings: [text]")
    listed = list(texts)
    for at, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"{name}[{at}] is a {type(text).__name__}; every text must be a string")
    return listed


def check_threads(threads: Any) -> int | None:
    """Return a number of threads of the CPU, or None for the default."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, WHOLE) or not 1 <= threads <= MAX_THREADS:
        raise InputError(f"threads is {threads!r}; it must be a whole number from 1 to {MAX_THREADS}, or None")
    return int(threads)
