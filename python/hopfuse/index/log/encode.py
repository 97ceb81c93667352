"""A batch of changes that is written: arrays by name, and their encoding as the payload of a log frame."""

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
from ..schema import METADATA
from ..schema import RULES as SECTIONS

Arrays = Mapping[str, NDArray[Any]]
_COUNT = struct.Struct("<2I")
#: The code of a NumPy dtype in the format.
_CODES = {dtype_of(name): code for code, name in enumerate(DTYPES)}
_PADDING = bytes(8)
_SWAPS = sys.byteorder == "big"

#: Weights of edges that a change may state; float32 holds all their sums.
LEAST_WEIGHT, MOST_WEIGHT = 2.0**-64, 2.0**64
#: Shape of an array: for each dimension, a letter with an offset, a fixed size, or None for any size.
Shape = tuple[tuple[str | None, int] | int, ...]


class Slots(NamedTuple):
    """Numbers of passages and entities that were ever added; slots are not reused."""

    passages: int
    entities: int


def _strings(name: str, count: str) -> dict[str, tuple[str, Shape]]:
    return {f"{name}.offsets": ("int64", ((count, 1),)), f"{name}.bytes": ("uint8", ((None, 0),))}


RULES: dict[str, tuple[str, Shape]] = {
    "delete.passage": ("int64", (("Dp", 0),)),
    "delete.entity": ("int64", (("De", 0),)),
    "delete.alias.entity": ("int64", (("Da", 0),)),
    **_strings("delete.alias.name", "Da"),
    "delete.edge": ("int64", (("Dg", 0), 3)),
    "delete.fact": ("int64", (("Df", 0), 3)),
    **_strings("passage.id", "P"),
    "passage.id.number": ("int64", (("P", 0),)),
    **_strings("passage.title", "P"),
    **_strings("passage.text", "P"),
    "passage.length": ("int32", (("P", 0),)),
    "passage.vectors": ("", (("P", 0), (None, 0))),
    "passage.document": ("int32", (("P", 0),)),
    **_strings("document.name", "D"),
    "document.number": ("int64", (("D", 0),)),
    "passage.language": ("int32", (("P", 0),)),
    **_strings("language.tag", "J"),
    **{name: (rule.dtype, ((None, 0),)) for name, rule in SECTIONS.items() if rule.group == METADATA},
    **_strings("entity.name", "E"),
    "entity.word": ("uint8", (("E", 0),)),
    "entity.vectors": ("", (("E", 0), (None, 0))),
    "entity.stated": ("uint8", (("E", 0),)),
    "stated.entity": ("int64", (("Se", 0),)),
    "alias.entity": ("int64", (("A", 0),)),
    **_strings("alias.name", "A"),
    **_strings("edge.type_name", "T"),
    "edge.end": ("int64", (("S", 0), 2)),
    "edge.type": ("int64", (("S", 0),)),
    "edge.weight": ("float64", (("S", 0),)),
    "edge.passage": ("int64", (("S", 0),)),
    **_strings("fact.relation", "R"),
    "fact.row": ("int64", (("Q", 0), 4)),
    **_strings("lexical.term", "V"),
    "lexical.indptr": ("int64", (("V", 1),)),
    "lexical.passage": ("int64", (("Z", 0),)),
    "lexical.count": ("int32", (("Z", 0),)),
    **_strings("source.state", "B"),
}
#: Arrays that are present together.
GROUPS = (
    tuple(name for name in RULES if name.startswith("metadata.")),
    ("delete.alias.entity", "delete.alias.name.offsets", "delete.alias.name.bytes"),
    ("passage.length", "passage.title.offsets", "passage.title.bytes", "passage.text.offsets", "passage.text.bytes"),
    ("passage.id.offsets", "passage.id.bytes"),
    ("document.name.offsets", "document.name.bytes"),
    ("passage.language", "language.tag.offsets", "language.tag.bytes"),
    ("entity.word", "entity.name.offsets", "entity.name.bytes"),
    ("alias.entity", "alias.name.offsets", "alias.name.bytes"),
    ("edge.type_name.offsets", "edge.type_name.bytes"),
    ("edge.end", "edge.type", "edge.weight", "edge.passage"),
    ("fact.relation.offsets", "fact.relation.bytes"),
    ("source.state.offsets", "source.state.bytes"),
    ("lexical.indptr", "lexical.term.offsets", "lexical.term.bytes", "lexical.passage", "lexical.count"),
)


#: Arrays of which a batch has exactly one if it has another array: what are strings or integers.
EITHER = {
    "passage.length": ("passage.id.offsets", "passage.id.number"),
    "passage.document": ("document.name.offsets", "document.number"),
}


#: Kinds of rows: 1 if they are added or -1 if they are deleted, and the array that has one row for each.
KINDS = {
    "deleted passages": (-1, "delete.passage"),
    "deleted entities": (-1, "delete.entity"),
    "deleted aliases": (-1, "delete.alias.entity"),
    "deleted edges": (-1, "delete.edge"),
    "deleted facts": (-1, "delete.fact"),
    "passages": (1, "passage.length"),
    "entities": (1, "entity.word"),
    "stated entities": (1, "stated.entity"),
    "aliases": (1, "alias.entity"),
    "edges": (1, "edge.end"),
    "statements of facts": (1, "fact.row"),
}


@cache
def empty(name: str) -> NDArray[Any]:
    """Return an array without rows, of the right dtype and shape."""
    dtype, shape = RULES[name]
    return np.zeros(tuple(size if isinstance(size, int) else 0 for size in shape), dtype)


class Batch:
    """The arrays of one batch; an absent array is empty.

    Passages and entities are identified by slots: the rows of the generation, then numbers in order of addition. The
    end of an edge is the slot of a passage, or -1 minus the slot of an entity. Edge types and relations are positions
    in the batch's own lists of names. Deletions apply to what existed before the batch, and precede its additions.
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

    def moved(self, passages: NDArray[np.int64], entities: NDArray[np.int64], before: Slots) -> Batch:
        """Return the batch with slots renumbered to ``passages[slot]`` and ``entities[slot]``."""
        moved = dict(self.arrays)
        for name, slots in (("delete.passage", passages), ("delete.entity", entities)):
            if name in moved:
                moved[name] = slots[moved[name]]
        for name in ("delete.alias.entity", "alias.entity", "stated.entity"):
            if name in moved:
                moved[name] = entities[moved[name]]
        if "edge.passage" in moved:
            stated = moved["edge.passage"]
            moved["edge.passage"] = np.where(stated < 0, stated, passages[stated])
        for name in ("edge.end", "delete.edge"):
            if name in moved:
                ends = moved[name][:, :2]
                new = np.where(ends < 0, -1 - entities[-1 - np.minimum(ends, -1)], passages[np.maximum(ends, 0)])
                moved[name] = np.concatenate([new, moved[name][:, 2:]], axis=1)
        for name, columns in (("fact.row", (0, 2)), ("delete.fact", (0, 2))):
            if name in moved:
                moved[name] = moved[name].copy()
                moved[name][:, columns] = entities[moved[name][:, columns]]
        if "fact.row" in moved:
            moved["fact.row"][:, 3] = passages[moved["fact.row"][:, 3]]
        return Batch(moved, before)


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
