"""A record of the log: its arrays, the slots that it begins with, and its bytes as the payload of a frame."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types.edge_statements import UNKNOWN
from ..file.format import DTYPES, ENTRY, dtype_of
from ..file.sections import Section
from ..schema import (
    ALIASES,
    ANY,
    COLUMNS,
    EDGE_TYPES,
    EDGES,
    ENTITIES,
    METADATA,
    PASSAGES,
    RELATIONS,
    STATEMENTS,
    STATES,
    STRINGS,
    TERM_ENTRIES,
    TERMS,
    VECTOR,
    Size,
)

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


# ---- The arrays ----


class Numbers(NamedTuple):
    """What the numbers of an array are: ``least`` .. ``most`` - 1, and what becomes of them.

    Bounds that each record extends are named: the passages and entities before it (``old``) and after it, those that
    it adds (``new``), and its own lists of names. One with a minus is a lower bound, of entities at ends of edges.
    """

    most: int | str
    least: int | str = 0
    slots: str = ""
    """What they are slots of: ``passages``, ``entities``, or ``ends``."""
    names: str = ""
    """The names of the record that they are places in, which get numbers common to all records."""


class Array(NamedTuple):
    """An array of a record, or two of strings."""

    name: str
    dtype: str
    sizes: tuple[Size | int, ...]
    group: str = ""
    """Arrays of a group are present together; those of strings always are."""
    numbers: tuple[Numbers, ...] = ()
    """For each column."""
    follows: str | None = ""
    """The section whose rows its own continue: empty without one, None if they are not kept as rows."""
    default: int | None = None
    """The value of a row without one, if records and generations may lack the array."""
    counts: str = ""
    """What a row of it stands for in a history."""


_OLD_PASSAGE, _PASSAGE = Numbers("old passages", slots="passages"), Numbers("passages", slots="passages")
_OLD_ENTITY, _ENTITY = Numbers("old entities", slots="entities"), Numbers("entities", slots="entities")
_OLD_END, _END = (Numbers(f"{when}passages", f"-{when}entities", "ends") for when in ("old ", ""))
_OWNER = Numbers("passages", UNKNOWN, "passages")
_EDGE_TYPE, _RELATION = Numbers("edge types", names="edge.type_name"), Numbers("relations", names="fact.relation")
_DELETED = {what: Size(f"deleted {what}") for what in ("passages", "entities", "aliases", "edges", "facts")}
_SECTION = {column.name: column for column in COLUMNS}


def _added(name: str, group: str = "", **more: Any) -> Array:
    """Return an array of a section's dtype and sizes, whose rows continue that section."""
    return Array(name, _SECTION[name].dtype, _SECTION[name].sizes, group, **({"follows": name} | more))


_ARRAYS = (
    Array("delete.passage", "int64", (_DELETED["passages"],), "", (_OLD_PASSAGE,), counts="deleted passages"),
    Array("delete.entity", "int64", (_DELETED["entities"],), "", (_OLD_ENTITY,), counts="deleted entities"),
    Array(
        *("delete.alias.entity", "int64", (_DELETED["aliases"],), "deleted aliases", (_OLD_ENTITY,)),
        counts="deleted aliases",
    ),
    Array("delete.alias.name", STRINGS, (_DELETED["aliases"],), "deleted aliases"),
    Array(
        *("delete.edge", "int64", (_DELETED["edges"], 3), "", (_OLD_END, _OLD_END, _EDGE_TYPE)),
        counts="deleted edges",
    ),
    Array(
        *("delete.fact", "int64", (_DELETED["facts"], 3), "", (_OLD_ENTITY, _RELATION, _OLD_ENTITY)),
        counts="deleted facts",
    ),
    _added("passage.id"),
    _added("passage.id.number"),
    _added("passage.title", "passages"),
    _added("passage.text", "passages"),
    _added("passage.length", "passages", counts="passages"),
    Array("passage.vectors", VECTOR, (PASSAGES, ANY), follows="passage.vectors"),
    _added("passage.document", numbers=(Numbers("documents", -1),), default=-1),
    _added("document.name"),
    _added("document.number"),
    _added("passage.language", "languages", numbers=(Numbers("languages", -1),), default=-1),
    _added("language.tag", "languages"),
    *(
        Array(column.name, column.dtype, (ANY,), "metadata", follows=None)
        for column in COLUMNS
        if column.group is METADATA
    ),
    _added("entity.name", "entities"),
    Array("entity.word", "uint8", (ENTITIES,), "entities", counts="entities"),
    Array("entity.vectors", VECTOR, (ENTITIES, ANY), follows="entity.vectors"),
    _added("entity.stated", numbers=(Numbers(2),), default=1),
    Array("stated.entity", "int64", (Size("stated entities"),), numbers=(_OLD_ENTITY,), counts="stated entities"),
    Array("alias.entity", "int64", (ALIASES,), "aliases", (_ENTITY,), counts="aliases"),
    Array("alias.name", STRINGS, (ALIASES,), "aliases", follows="entity.alias"),
    Array("edge.type_name", STRINGS, (EDGE_TYPES,), follows=None),
    Array("edge.end", "int64", (EDGES, 2), "edges", (_END, _END), counts="edges"),
    Array("edge.type", "int64", (EDGES,), "edges", (_EDGE_TYPE,)),
    Array("edge.weight", "float64", (EDGES,), "edges"),
    Array("edge.passage", "int64", (EDGES,), "edges", (_OWNER,)),
    Array("fact.relation", STRINGS, (RELATIONS,), follows=None),
    Array(
        *("fact.row", "int64", (STATEMENTS, 4), "", (_ENTITY, _RELATION, _ENTITY, _PASSAGE)),
        counts="statements of facts",
    ),
    Array("lexical.term", STRINGS, (TERMS,), "terms", follows=None),
    Array("lexical.indptr", "int64", (TERMS + 1,), "terms", follows=None),
    Array("lexical.passage", "int64", (TERM_ENTRIES,), "terms", (Numbers("new passages"),)),
    Array("lexical.count", "int32", (TERM_ENTRIES,), "terms", (Numbers(2**31, 1),)),
    Array("source.state", STRINGS, (STATES,), follows=None),
)
#: The sections of names that get common numbers, by the arrays with those of records.
COMMON_NAMES = {"edge.type_name": "graph.type_name", "fact.relation": "fact.relation"}
#: Arrays of which a record has exactly one if it has another array: what are strings or integers.
EITHER = {
    "passage.length": ("passage.id.offsets", "passage.id.number"),
    "passage.document": ("document.name.offsets", "document.number"),
}
#: The array that has a row for each added passage or entity.
ADDED = {PASSAGES: "passage.length", ENTITIES: "entity.word"}


def _single(arrays: tuple[Array, ...]) -> Iterator[Array]:
    """Yield arrays with the two of strings in place of one."""
    for array in arrays:
        if array.dtype != STRINGS:
            yield array
            continue
        (size,), group = array.sizes, array.group or array.name
        for part, dtype, own in (("offsets", "int64", size + 1), ("bytes", "uint8", ANY)):
            follows = array.follows and f"{array.follows}.{part}"
            yield Array(f"{array.name}.{part}", dtype, (own,), group, follows=follows)


#: By name, in the order of the specification.
ARRAYS = {array.name: array for array in _single(_ARRAYS)}
#: The arrays, numbered.
NUMBER = {name: number for number, name in enumerate(ARRAYS)}
#: Kinds of rows in a history: 1 if they are added or -1 if they are deleted, and the array that has one row for each.
KINDS = {
    array.counts: (-1 if array.name.startswith("delete.") else 1, array.name)
    for array in ARRAYS.values()
    if array.counts
}


@cache
def empty(name: str) -> NDArray[Any]:
    """Return an array without rows, of the right dtype and shape."""
    array = ARRAYS[name]
    shape = (size if isinstance(size, int) else 0 for size in array.sizes)
    return np.zeros(tuple(shape), "float64" if array.dtype == VECTOR else array.dtype)


# ---- The record ----


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
