"""Records of the log: their arrays, the slots that they begin with, and their bytes as payloads of frames."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file.columns import StringColumn
from ..file.format import DTYPES, ENTRY, dtype_of
from ..file.sections import Section
from ..schema import ARRAYS, VECTOR

Rows = NDArray[np.int64]

Arrays = Mapping[str, NDArray[Any]]
#: The head of a payload: the number of arrays, and 0.
COUNT = struct.Struct("<2I")
#: The code of a NumPy dtype in the format.
_CODES = {dtype_of(name): code for code, name in enumerate(DTYPES)}
#: The names of arrays as they are written.
_NAMES = {name: name.encode() for name in ARRAYS}
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


class Values(NamedTuple):
    """The values of a column of metadata: of lists, ``data`` holds the numbers of items."""

    type: str
    present: NDArray[np.bool_]
    data: NDArray[Any]
    items: NDArray[np.int32]


class MetadataRows(NamedTuple):
    """The metadata of batches with the same columns."""

    columns: dict[str, Values]
    strings: list[str]
    """What the codes of strings are places in."""
    passages: Rows
    """The passages, counted over all batches."""
    first: int
    """The first of the batches."""


@dataclass(frozen=True, eq=False, repr=False)
class LogRecords:
    """Joined batches. Each array holds the rows of all batches in order; an absent array is empty.

    Offsets of strings, and ``lexical.indptr``, belong to the joined rows.
    """

    arrays: dict[str, NDArray[Any]]
    rows: dict[str, Rows]
    """The number of rows of each batch, by array; for offsets the number of strings."""
    metadata: list[MetadataRows]
    before: Slots
    size: int
    texts: Mapping[str, list[str]] = field(default_factory=dict)
    """Strings by the name of their arrays, if they were read already."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, or an empty one of the right dtype and shape."""
        return self.arrays[name] if name in self.arrays else empty(name)

    def count(self, name: str) -> Rows:
        """Return the number of rows of each batch in an array."""
        return self.rows[name] if name in self.rows else np.zeros(self.size, np.int64)

    def strings(self, name: str) -> list[str]:
        """Return the strings of ``name.offsets`` and ``name.bytes``."""
        if name in self.texts:
            return self.texts[name]
        return list(self._column(name)) if f"{name}.offsets" in self.arrays else []

    @property
    def after(self) -> Slots:
        """The slots after the last batch."""
        return Slots(
            self.before.passages + int(self.count("passage.length").sum()),
            self.before.entities + int(self.count("entity.word").sum()),
        )

    def _column(self, name: str) -> StringColumn:
        parts = (f"{name}.offsets", f"{name}.bytes")
        return StringColumn(*(Section(f"array {part!r} of a batch", self.arrays[part]) for part in parts))


def encode(arrays: Arrays) -> bytes:
    """Return the payload of a frame: the number of arrays, their table, and the arrays, each at a multiple of 8."""
    table, parts, at = [COUNT.pack(len(arrays), 0)], list[bytes](), COUNT.size + ENTRY.size * len(arrays)
    for name, array in arrays.items():
        shape, data = array.shape, (array.byteswap() if _SWAPS else array).tobytes()
        size, columns = len(data), shape[1] if len(shape) == 2 else 0
        table.append(ENTRY.pack(_NAMES[name], _CODES[array.dtype], len(shape), shape[0], columns, at, size))
        parts.append(data)
        if size % 8:
            parts.append(_PADDING[size % 8 :])
            size += 8 - size % 8
        at += size
    return b"".join(table + parts)
