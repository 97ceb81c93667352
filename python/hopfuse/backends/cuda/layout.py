"""Several arrays in one block of bytes, so that they are allocated, uploaded or downloaded at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

#: The alignment of arrays in a block, in bytes.
ALIGN = 256


class Slot(NamedTuple):
    """An array's place in a block of bytes."""

    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def view(self, block: Any) -> Any:
        return block[self.begin : self.begin + self.nbytes].view(self.dtype).reshape(self.shape)


class Layout:
    """Consecutive aligned arrays in a block."""

    def __init__(self, arrays: Sequence[tuple[tuple[int, ...], Any]]) -> None:
        self.slots: list[Slot] = []
        self.nbytes = 0
        for shape, dtype in arrays:
            begin = -(-self.nbytes // ALIGN) * ALIGN
            self.slots.append(Slot(begin, tuple(shape), np.dtype(dtype)))
            self.nbytes = begin + self.slots[-1].nbytes

    def views(self, block: Any) -> list[Any]:
        return [slot.view(block) for slot in self.slots]


@lru_cache(maxsize=256)
def layout_of(*arrays: tuple[tuple[int, ...], Any]) -> Layout:
    """Return the layout of arrays with these shapes and dtypes, which most calls have in common."""
    return Layout(arrays)
