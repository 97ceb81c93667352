"""Release the memory pages of memory-mapped files."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the memory map that holds an array's data, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def release_pages(array: NDArray[Any]) -> None:
    """Release a mapped array's pages (MADV_DONTNEED); reading them again loads them from the file or its cache.

    Does nothing if the array is not mapped, if the mapping is writable (changes might be lost), or if the system lacks
    madvise. Locked pages stay in memory.
    """
    mapping = mapping_of(array)
    if mapping is None or not memoryview(mapping).readonly or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        with contextlib.suppress(OSError):  # pages are locked
            mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
