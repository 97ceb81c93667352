"""A batch of changes: arrays by name, and their encoding as the payload of a log frame."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .columns import StringColumn, string_column
from .format import ENTRY, Entry, dtype_of, name_of, pack_entry, parse_entry
from .metadata import check_metadata
from .schema import METADATA
from .schema import RULES as SECTIONS
from .sections import Section

Arrays = Mapping[str, NDArray[Any]]
_COUNT = struct.Struct("<2I")
_MAX_SECTIONS = 256

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
    **{name: (rule.dtype, ((None, 0),)) for name, rule in SECTIONS.items() if rule.group == METADATA},
    **_strings("entity.name", "E"),
    "entity.word": ("uint8", (("E", 0),)),
    "entity.vectors": ("", (("E", 0), (None, 0))),
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
    ("entity.word", "entity.name.offsets", "entity.name.bytes"),
    ("alias.entity", "alias.name.offsets", "alias.name.bytes"),
    ("edge.type_name.offsets", "edge.type_name.bytes"),
    ("edge.end", "edge.type", "edge.weight", "edge.passage"),
    ("fact.relation.offsets", "fact.relation.bytes"),
    ("source.state.offsets", "source.state.bytes"),
    ("lexical.indptr", "lexical.term.offsets", "lexical.term.bytes", "lexical.passage", "lexical.count"),
)


_KINDS = {
    "deleted passages": (-1, "delete.passage"),
    "deleted entities": (-1, "delete.entity"),
    "deleted aliases": (-1, "delete.alias.entity"),
    "deleted edges": (-1, "delete.edge"),
    "deleted facts": (-1, "delete.fact"),
    "passages": (1, "passage.length"),
    "entities": (1, "entity.word"),
    "aliases": (1, "alias.entity"),
    "edges": (1, "edge.end"),
    "statements of facts": (1, "fact.row"),
}


class Batch:
    """The checked arrays of one batch; an absent array is empty.

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
        if name in self.arrays:
            return self.arrays[name]
        dtype, shape = RULES[name]
        return np.zeros(tuple(size if isinstance(size, int) else 0 for size in shape), dtype)

    def strings(self, name: str) -> list[str]:
        """Return the strings of ``name.offsets`` and ``name.bytes``."""
        return list(_column(self.arrays, name)) if f"{name}.offsets" in self.arrays else []

    def counts(self) -> dict[str, int]:
        """Return the number of rows added or, if negative, deleted, by kind."""
        found = {what: sign * self._count(name) for what, (sign, name) in _KINDS.items()}
        return {what: count for what, count in found.items() if count}

    def edge_types(self) -> set[str]:
        """Return the types of the added edges."""
        names = self.strings("edge.type_name")
        return {names[kind] for kind in np.unique(self["edge.type"]).tolist()}

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
        for name in ("delete.alias.entity", "alias.entity"):
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
    entries, at = [], _COUNT.size + ENTRY.size * len(arrays)
    for name, array in arrays.items():
        entries.append(Entry(name, name_of(array.dtype), array.shape, at))
        at += entries[-1].length + -entries[-1].length % 8
    parts = [_COUNT.pack(len(entries), 0), *(pack_entry(entry) for entry in entries)]
    for entry in entries:
        data = np.ascontiguousarray(arrays[entry.name], dtype_of(entry.dtype).newbyteorder("<")).tobytes()
        parts += [data, bytes(-len(data) % 8)]
    return b"".join(parts)


def decode(payload: memoryview) -> dict[str, NDArray[Any]]:
    """Return the arrays of a payload, without a copy.

    Raises
    ------
    FormatError
        The payload violates FORMAT.md.
    """
    count, zero = _COUNT.unpack(payload[: _COUNT.size]) if len(payload) >= _COUNT.size else (0, 1)
    at = _COUNT.size + ENTRY.size * count
    if zero or count > _MAX_SECTIONS or at > len(payload):
        raise FormatError(f"a batch has {count} arrays in {len(payload)} bytes")
    arrays = {}
    for row in range(count):
        first = _COUNT.size + ENTRY.size * row
        entry, length = parse_entry(row, payload[first : first + ENTRY.size])
        if (entry.offset, entry.length) != (at, length) or at + length > len(payload):
            raise FormatError(
                f"array {entry.name!r} of a batch has {length} bytes at {entry.offset}; its place is {at}"
            )
        dtype = dtype_of(entry.dtype).newbyteorder("<")
        data = np.frombuffer(payload[at : at + length], np.uint8)
        arrays[entry.name] = data.view(dtype).reshape(entry.shape) if length else np.zeros(entry.shape, dtype)
        at += length + -length % 8
    if at != len(payload) or len(arrays) != count:
        raise FormatError(f"a batch ends at {at} of {len(payload)} bytes, or has a name twice")
    return arrays


def read_batch(payload: memoryview, before: Slots) -> Batch:
    """Return the batch of a frame, after checking everything that a merge relies on.

    Raises
    ------
    FormatError
    """
    arrays = decode(payload)
    sizes = _check_shapes(arrays)
    batch = Batch(arrays, before)
    places, entities = batch.after
    _check_range(arrays, "delete.passage", 0, before.passages)
    for name, most in (("delete.entity", before.entities), ("delete.alias.entity", before.entities)):
        _check_range(arrays, name, 0, most)
    _check_range(arrays, "alias.entity", 0, entities)
    _check_range(arrays, "edge.passage", -1, places)
    _check_range(arrays, "edge.type", 0, sizes.get("T", 0))
    _check_range(arrays, "lexical.passage", 0, sizes.get("P", 0))
    _check_range(arrays, "lexical.count", 1, 2**31)
    for name, (most_passages, most_entities) in (("edge.end", batch.after), ("delete.edge", before)):
        _check_range({name: batch[name][:, :2]}, name, -most_entities, most_passages)
    _check_range({"delete.edge": batch["delete.edge"][:, 2]}, "delete.edge", 0, sizes.get("T", 0))
    for name, most in (("fact.row", entities), ("delete.fact", before.entities)):
        _check_range({name: batch[name][:, [0, 2]]}, name, 0, most)
        _check_range({name: batch[name][:, 1]}, name, 0, sizes.get("R", 0))
    _check_range({"fact.row": batch["fact.row"][:, 3]}, "fact.row", 0, places)
    weight = batch["edge.weight"]
    if not ((weight >= LEAST_WEIGHT) & (weight <= MOST_WEIGHT)).all():
        raise FormatError("array 'edge.weight' of a batch holds weights outside 2^-64 .. 2^64")
    if sizes.get("B", 1) != 1:
        raise FormatError(f"a batch has {sizes['B']} states of the index's source; there is 1")
    if "metadata.type" in arrays:
        check_metadata(batch.sections("metadata."), sizes.get("P", 0))
    indptr = batch["lexical.indptr"]
    if indptr.size and (indptr[0] != 0 or indptr[-1] != sizes.get("Z", 0) or (np.diff(indptr) < 0).any()):
        raise FormatError("array 'lexical.indptr' of a batch does not ascend over the entries")
    return batch


def _check_shapes(arrays: Arrays) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if name not in RULES:
            raise FormatError(f"array {name!r} of a batch is unknown to this format version")
        dtype, shape = RULES[name]
        kind = name_of(array.dtype)
        if (kind != dtype and (dtype or kind not in ("float32", "float16", "bfloat16"))) or array.ndim != len(shape):
            raise FormatError(f"array {name!r} of a batch is {kind}{array.shape}")
        for rule, size in zip(shape, array.shape, strict=True):
            letter, more = (None, rule) if isinstance(rule, int) else rule
            right = (
                more
                if isinstance(rule, int)
                else size
                if letter is None
                else sizes.setdefault(letter, size - more) + more
            )
            if size != right:
                raise FormatError(f"array {name!r} of a batch has shape {array.shape}; {right} is the size elsewhere")
    for group in GROUPS:
        there = [name for name in group if name in arrays]
        if there and len(there) != len(group):
            raise FormatError(
                f"array {there[0]!r} of a batch is present without {next(n for n in group if n not in there)!r}"
            )
    ids = [name for name in ("passage.id.offsets", "passage.id.number") if name in arrays]
    if len(ids) != ("passage.length" in arrays):
        raise FormatError(f"a batch has {len(ids)} kinds of ids for its passages")
    for name in arrays:
        if name.endswith(".offsets"):
            _column(arrays, name.removesuffix(".offsets")).check()
    return sizes


def _check_range(arrays: Arrays, name: str, least: int, most: int) -> None:
    array = arrays.get(name)
    if array is not None and array.size and (array.min() < least or array.max() >= most):
        raise FormatError(f"array {name!r} of a batch holds numbers outside {least} .. {most - 1}")


def _column(arrays: Arrays, name: str) -> StringColumn:
    parts = (f"{name}.offsets", f"{name}.bytes")
    return string_column({part: Section(f"array {part!r} of a batch", arrays[part]) for part in parts}, name)
