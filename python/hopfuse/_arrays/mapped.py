"""Pages of memory-mapped files, given back when they were read."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping of a file that an array is in; None where it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def give_pages_back(array: NDArray[Any]) -> None:
    """Drop a mapped array's pages from the process; what is read of them again comes from the file or its cache.

    Nothing happens to an array that is not mapped, or by a mapping that can be written, whose changes may be in memory
    alone, or where the system has no such call; pages that are locked in memory stay.
    """
    mapping = mapping_of(array)
    if mapping is None or not memoryview(mapping).readonly or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        with contextlib.suppress(OSError):  # locked pages stay
            mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
