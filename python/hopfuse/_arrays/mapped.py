"""Release the memory pages of memory-mapped files, and continue an array of one in memory without a copy."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
from functools import cache
from math import prod
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


def with_room(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return an array of ``rows`` rows, the first of which are those of an array and must not be written.

    If the array is mapped from a file, its whole pages are mapped once more, with memory for the other rows behind them
    (Linux); otherwise it is copied. Other rows are undefined.
    """
    grown = _mapped_again(array, rows)
    if grown is None:
        grown = np.empty((rows, *array.shape[1:]), array.dtype)
        grown[: len(array)] = array
    return grown


#: Flags of mremap: move the mapping, to the given address.
_MAY_MOVE, _FIXED = 1, 2


def _mapped_again(array: NDArray[Any], rows: int) -> NDArray[Any] | None:
    """Return the array of :func:`with_room` over the same pages, or None if it cannot be mapped."""
    mapping, remap = mapping_of(array), _mremap()
    start = array.ctypes.data
    shift = start % mmap.PAGESIZE  # of the array in its first page
    shared = (shift + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if mapping is None or remap is None or not memoryview(mapping).readonly or not shared:
        return None
    size = shift + rows * prod(array.shape[1:]) * array.itemsize
    room = mmap.mmap(-1, max(size, shared), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    place = np.frombuffer(room, np.uint8).ctypes.data
    # a size of 0 maps the pages of a shared mapping a second time; they replace those at the beginning of the room
    if remap(start - shift, 0, shared, _MAY_MOVE | _FIXED, place) != place:
        return None
    grown: NDArray[Any] = np.ndarray((rows, *array.shape[1:]), array.dtype, buffer=room, offset=shift)
    rest = shared - shift
    grown.reshape(-1).view(np.uint8)[rest : array.nbytes] = array.reshape(-1).view(np.uint8)[rest:]
    return grown


@cache
def _mremap() -> Any:
    """Return the system's mremap, or None."""
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mremap"):
        return None
    function = ctypes.CDLL(None).mremap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    return function
