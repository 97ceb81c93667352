"""Argument checks shared by every room; each is linear in its input. Imports only ``errors``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

#: The default upper limit of a whole number: the most nodes that a graph can have.
MAX_WHOLE = 2**31 - 1
#: The most threads that a call can use.
MAX_THREADS = 1024
#: The accepted types of a whole number and of a real number. ``bool`` is an ``int`` and is refused separately.
WHOLE = (int, np.integer)
REAL = (int, float, np.integer, np.floating)


def counted(number: int, noun: str) -> str:
    """Return a number and its noun in singular or plural.

    Examples
    --------
    >>> counted(1, "passage"), counted(1200, "query")
    ('1 passage', '1,200 queries')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def check_k(k: Any) -> int:
    """Return k as an int; it is at least 0 and may exceed the length of any list."""
    if isinstance(k, bool) or not isinstance(k, WHOLE) or k < 0:
        raise InputError(f"k is {k!r}; it must be a whole number, at least 0")
    return int(k)


def check_whole(value: Any, name: str, most: int = MAX_WHOLE) -> int:
    """Return ``value`` as an int; it must be from 1 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, WHOLE) or not 1 <= value <= most:
        raise InputError(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return int(value)


def is_real(number: Any) -> bool:
    """Return whether ``number`` is a Python or NumPy real number, not a bool, that a float can hold."""
    if not isinstance(number, REAL) or isinstance(number, bool):
        return False
    try:
        float(number)
    except OverflowError:
        return False
    return True


def check_real(array: NDArray[Any], name: str) -> None:
    """Raise unless the dtype is real."""
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {array.dtype}; it must hold real numbers")


def checked_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return the texts as a list; raise if ``texts`` is a single string or has an entry that is not a string."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"{name} is one {type(texts).__name__}; pass a list of strings: [text]")
    listed = list(texts)
    for at, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"{name}[{at}] must be a string, got {type(text).__name__}")
    return listed


def check_threads(threads: Any) -> int | None:
    """Return the number of CPU threads as an int, or None for the default."""
    return None if threads is None else check_whole(threads, "threads", MAX_THREADS)
