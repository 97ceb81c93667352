"""A record of the log: its arrays, the slots that it begins with, and its bytes as the payload of a frame."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file.format import DTYPES, ENTRY, dtype_of
from ..file.sections import Section
from ..schema import ARRAYS, VECTOR

Arrays = Mapping[str, NDArray[Any]]
_COUNT = struct.Struct("<2I")
#: The code of a NumPy dtype in the format.
_CODES = {dtype_of(name): code for code, name in enumerate(DTYPES)}
_PADDING = bytes(8)
_SWAPS = sys.byteorder == "big"

#: Weights of edges that a change may state; float32 holds all their sums.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-64, 2.0**64


class Slots(NamedTuple):
    """Numbers of passages and entities that were ever added; slots are not reused."""

    passages: int
    entities: int


@cache
def empty(name: str) -> NDArray[Any]:
    """Return an array without rows, of the right dtype and shape."""
    array = ARRAYS[name]
    shape = (size if isinstance(size, int) else 0 for size in array.sizes)
    return np.zeros(tuple(shape), "float64" if array.dtype == VECTOR else array.dtype)


class LogRecord:
    """The arrays of one record; an absent array is empty.

    Passages and entities are identified by slots: the rows of the generation, then numbers in order of addition. The
    end of an edge is the slot of a passage, or -1 minus the slot of an entity. Edge types and relations are positions
    in the record's own lists of names. Deletions apply to what existed before the record, and precede its additions.
    """

    def __init__(self, arrays: Arrays, before: Slots) -> None:
        self.arrays = arrays
        self.before = before
        self.after = Slots(
            before.passages + self._count("passage.length"), before.entities + self._count("entity.word")
        )

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, or an empty one of the right dtype and shape."""
        return self.arrays[name] if name in self.arrays else empty(name)

    def strings(self, name: str) -> list[str]:
        """Return the strings of ``name.offsets`` and ``name.bytes``."""
        if f"{name}.offsets" not in self.arrays:
            return []
        data = self.arrays[f"{name}.bytes"].tobytes()
        return [data[first:end].decode() for first, end in pairwise(self.arrays[f"{name}.offsets"].tolist())]

    def edge_types(self) -> set[str]:
        """Return the types of the added edges."""
        names = self.strings("edge.type_name")
        return {names[kind] for kind in set(self["edge.type"].tolist())} if names else set()

    def sections(self, prefix: str) -> dict[str, Section]:
        """Return the arrays whose names begin with ``prefix``, as sections."""
        return {
            name: Section(f"array {name!r} of a batch", array)
            for name, array in self.arrays.items()
            if name.startswith(prefix)
        }

    def _count(self, name: str) -> int:
        return self.arrays[name].shape[0] if name in self.arrays else 0

    def moved(self, passages: NDArray[np.int64], entities: NDArray[np.int64], before: Slots) -> LogRecord:
        """Return the record with slots renumbered to ``passages[slot]`` and ``entities[slot]``."""
        moved = dict(self.arrays)
        for name, array in moved.items():
            slots = [numbers.slots for numbers in ARRAYS[name].numbers]
            if any(slots):
                columns = array.reshape(len(array), -1).copy()
                for at, kind in enumerate(slots):
                    columns[:, at] = _moved(columns[:, at], kind, passages, entities)
                moved[name] = columns.reshape(array.shape)
        return LogRecord(moved, before)


def _moved(
    numbers: NDArray[np.int64], kind: str, passages: NDArray[np.int64], entities: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return slots of a kind, renumbered; a passage that is none stays."""
    moved = numbers.copy()
    if kind == "entities":
        return entities[numbers]
    if kind:
        moved[numbers >= 0] = passages[numbers[numbers >= 0]]
    if kind == "ends":
        moved[numbers < 0] = -1 - entities[-1 - numbers[numbers < 0]]
    return moved


def encode(arrays: Arrays) -> bytes:
    """Return the payload of a frame: the number of arrays, their table, and the arrays, each at a multiple of 8."""
    table, parts, at = [_COUNT.pack(len(arrays), 0)], list[bytes](), _COUNT.size + ENTRY.size * len(arrays)
    for name, array in arrays.items():
        shape, data = array.shape, (array.byteswap() if _SWAPS else array).tobytes()
        size, columns = len(data), shape[1] if len(shape) == 2 else 0
        table.append(ENTRY.pack(name.encode(), _CODES[array.dtype], len(shape), shape[0], columns, at, size))
        parts.append(data)
        if size % 8:
            parts.append(_PADDING[size % 8 :])
            size += 8 - size % 8
        at += size
    return b"".join(table + parts)
