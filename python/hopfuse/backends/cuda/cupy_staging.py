"""Pinned host memory through which small arrays are uploaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cupy_capture import as_bytes, host_address
from .layout import ALIGN, Layout

#: Bytes of the pinned memory, and the most that are uploaded through it at once.
STAGED_BYTES = 1 << 18


class Staging:
    """A block of pinned memory, used by one thread at a time and never freed, because copies read it later.

    Uploads take one part of it after another. Before the first part is used again, all copies must be over.
    """

    def __init__(self, cupy: Any, block: NDArray[np.uint8]) -> None:
        self._cupy, self._block = cupy, block
        self._used = 0
        self._copied: list[Any] = []  # an event after each copy

    def copy(self, target: int, layout: Layout, arrays: Sequence[NDArray[Any]]) -> None:
        """Queue a copy of the arrays to the address of a block on the device; it has read them on return."""
        if self._used + layout.nbytes > self._block.nbytes:
            for event in self._copied:
                event.synchronize()
            self._copied.clear()
            self._used = 0
        part = self._block[self._used : self._used + layout.nbytes]
        for slot, array in zip(layout.slots, arrays, strict=True):
            part[slot.begin : slot.begin + array.nbytes] = as_bytes(array)
        self._used += -(-layout.nbytes // ALIGN) * ALIGN
        cuda = self._cupy.cuda
        runtime, stream = cuda.runtime, cuda.get_current_stream()
        runtime.memcpyAsync(target, host_address(part), part.nbytes, runtime.memcpyHostToDevice, int(stream.ptr))
        self._copied.append(stream.record(cuda.Event(disable_timing=True)))
