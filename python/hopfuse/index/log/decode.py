"""Read many batches of a log at once: the arrays of all are joined, and checked in one pass.

A log of small commits has thousands of batches, and reading them one by one takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...types.edge_statements import UNKNOWN
from ..file.columns import StringColumn
from ..file.format import DTYPES, ENTRY, dtype_of
from ..file.sections import Section
from .encode import EITHER, GROUPS, LEAST_WEIGHT, MOST_WEIGHT, RULES, Slots, empty
from .metadata import MetadataRows, read_metadata

Rows = NDArray[np.int64]
_TABLE = np.dtype(
    [("name", "S32"), ("dtype", "<u4"), ("ndim", "<u4")]
    + [(name, "<u8") for name in ("rows", "columns", "offset", "length")]
)
_HEAD, _MAX_SECTIONS = 8, 256
#: The arrays of batches, numbered.
NUMBER = {name: number for number, name in enumerate(RULES)}
_NUMBER_OF_BYTES = {name.encode(): number for name, number in NUMBER.items()}
_VECTORS = [DTYPES.index(name) for name in ("float32", "float16", "bfloat16")]
_WIDTH = np.array([dtype_of(name).itemsize for name in DTYPES])
#: Strings of the batches by the name of their arrays.
_STRINGS = [name.removesuffix(".offsets") for name in RULES if name.endswith(".offsets")]


@dataclass(frozen=True, eq=False, repr=False)
class Batches:
    """Joined batches. Each array holds the rows of all batches in order; an absent array is empty.

    Offsets of strings, and ``lexical.indptr``, are those of the joined rows.
    """

    arrays: dict[str, NDArray[Any]]
    rows: dict[str, Rows]
    """The number of rows of each batch, by array; for offsets the number of strings."""
    metadata: list[MetadataRows]
    before: Slots
    size: int

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, or an empty one of the right dtype and shape."""
        return self.arrays[name] if name in self.arrays else empty(name)

    def count(self, name: str) -> Rows:
        """Return the number of rows of each batch in an array."""
        return self.rows[name] if name in self.rows else np.zeros(self.size, np.int64)

    def strings(self, name: str) -> list[str]:
        """Return the strings of ``name.offsets`` and ``name.bytes``."""
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


def read_batches(payloads: Sequence[bytes | memoryview], before: Slots, first: int) -> Batches:
    """Return the batches of some payloads, after checking everything that a merge relies on.

    Raises
    ------
    FormatError
        A payload violates FORMAT.md; the message names its seq, where ``first`` is that of the first payload.
    """
    try:
        return _read(payloads, before)
    except FormatError as error:
        if len(payloads) == 1:
            raise error.at(f"seq {first}") from None
    for seq, payload in enumerate(payloads, first):
        before = read_batches([payload], before, seq).after
    raise AssertionError("batches were refused together, but not one by one")


def _read(payloads: Sequence[bytes | memoryview], before: Slots) -> Batches:
    table = _table(payloads)
    sizes = _check_shapes(table)
    _check_groups(table)
    arrays, rows = dict[str, NDArray[Any]](), dict[str, Rows]()
    for number, name in enumerate(RULES):
        chosen = table.of(number)
        if chosen.size:
            arrays[name], rows[name] = table.joined(chosen)
    batches = Batches(arrays, rows, [], before, len(payloads))
    for name in _STRINGS:
        if f"{name}.offsets" in arrays:
            _join_offsets(batches, f"{name}.offsets", f"{name}.bytes")
            batches._column(name).check()
    if "lexical.indptr" in arrays:
        _join_offsets(batches, "lexical.indptr", "lexical.passage")
    _check_numbers(batches, sizes)
    if "metadata.type" in arrays:
        passages = batches.count("passage.length")
        has = table.present[:, NUMBER["metadata.type"]]
        batches.metadata.extend(read_metadata(arrays, rows, np.flatnonzero(has), passages))
    return batches


class _Table(NamedTuple):
    """The section tables of all payloads: a row for each array."""

    data: NDArray[np.uint8]
    size: int  # the number of batches
    batch: Rows
    name: Rows
    dtype: Rows
    ndim: Rows
    rows: Rows
    columns: Rows
    begin: Rows  # in the data
    length: Rows
    present: NDArray[np.bool_]  # (batches, names)

    def of(self, number: int) -> Rows:
        """Return the rows of the table for a name, one for each batch that has the array, in order."""
        return np.flatnonzero(self.name == number) if self.present[:, number].any() else np.zeros(0, np.int64)

    def shape(self, row: int) -> tuple[int, ...]:
        return (int(self.rows[row]), int(self.columns[row]))[: int(self.ndim[row])]

    def joined(self, chosen: Rows) -> tuple[NDArray[Any], Rows]:
        """Return the rows of an array, and their number in each batch."""
        name, kinds = tuple(RULES)[self.name[chosen[0]]], np.unique(self.dtype[chosen])
        columns = np.unique(self.columns[chosen])
        if kinds.size > 1 or columns.size > 1:
            raise FormatError("dtype", None, "array {array!r} has several dtypes or dimensions", array=name)
        ends = (self.begin[chosen] + self.length[chosen]).tolist()
        pieces = [self.data[begin:end] for begin, end in zip(self.begin[chosen].tolist(), ends, strict=True)]
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        array = whole.view(dtype_of(DTYPES[kinds[0]]).newbyteorder("<"))
        rows = np.zeros(self.size, np.int64)
        rows[self.batch[chosen]] = self.rows[chosen]
        return (array if self.ndim[chosen[0]] == 1 else array.reshape(-1, int(columns[0]))), rows


def _table(payloads: Sequence[bytes | memoryview]) -> _Table:
    """Read the section tables; each array must be in its place."""
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    if (sizes < _HEAD).any() or (sizes % 8).any():
        raise FormatError(
            "damaged",
            None,
            "a batch has {given} bytes; they are a multiple of 8, at least {least}",
            given=int(sizes.min()),
            least=_HEAD,
        )
    data = np.frombuffer(payloads[0] if len(payloads) == 1 else b"".join(payloads), np.uint8)
    starts = np.cumsum(sizes) - sizes
    words = data.view("<u4")
    count, zero = words[starts // 4].astype(np.int64), words[starts // 4 + 1]
    ends = _HEAD + ENTRY.size * count
    if zero.any() or (count > _MAX_SECTIONS).any() or (ends > sizes).any():
        raise FormatError(
            "damaged", None, "a batch has {given} arrays in {size} bytes", given=int(count.max()), size=int(sizes.min())
        )
    raw = b"".join(payload[_HEAD:end] for payload, end in zip(payloads, ends.tolist(), strict=True))
    rows = np.frombuffer(raw, _TABLE)
    batch = np.repeat(np.arange(sizes.size), count)
    name = np.array([_NUMBER_OF_BYTES.get(one, -1) for one in rows["name"].tolist()], np.int64)
    if (name < 0).any():
        unknown = rows["name"][int(np.argmin(name))].decode("ascii", "backslashreplace")
        raise FormatError(
            "unknown", None, "array {array!r} of a batch is unknown to this format version", array=unknown
        )
    present = np.zeros((sizes.size, len(RULES)), np.bool_)
    present[batch, name] = True
    if present.sum() != name.size:
        raise FormatError("duplicate", None, "a batch has an array twice")
    own = sizes[batch]
    if (rows["dtype"] >= len(DTYPES)).any() or not np.isin(rows["ndim"], (1, 2)).all():
        raise FormatError("dtype", None, "a batch has an array of an unknown dtype, or without one or two dimensions")
    flat = rows["ndim"] == 1
    wide = np.where(flat, 1, rows["columns"]).astype(np.float64)
    width = _WIDTH[rows["dtype"].astype(np.int64)]
    if (rows["columns"][flat] != 0).any() or (wide * rows["rows"] * width > own).any():
        raise FormatError("length", None, "a batch has an array that is larger than the batch")
    columns = np.where(wide > own, 0, wide).astype(np.int64)
    length = rows["rows"].astype(np.int64) * columns * width
    if (rows["length"] != length.astype(np.uint64)).any() or (rows["rows"] > own.astype(np.uint64)).any():
        raise FormatError("length", None, "a batch has an array whose length is not that of its shape")
    padded = length + -length % 8
    before = np.cumsum(padded) - padded
    firsts = np.cumsum(count) - count
    place = ends[batch] + before - np.repeat(before[firsts[count > 0]], count[count > 0])
    total = ends + np.bincount(batch, padded, minlength=sizes.size).astype(np.int64)
    if (rows["offset"] != place.astype(np.uint64)).any() or (total != sizes).any():
        raise FormatError("order", None, "a batch has an array that is not in its place, or bytes after its arrays")
    parts = (rows["dtype"].astype(np.int64), rows["ndim"].astype(np.int64), rows["rows"].astype(np.int64))
    return _Table(
        data, sizes.size, batch, name, *parts, np.where(flat, 0, columns), starts[batch] + place, length, present
    )


def _check_shapes(table: _Table) -> dict[str, Rows]:
    """Check dtypes and shapes, and return the sizes of each batch by letter, -1 if it has none."""
    sizes: dict[str, Rows] = {}
    for number, (name, (dtype, shape)) in enumerate(RULES.items()):
        chosen = table.of(number)
        if not chosen.size:
            continue
        allowed = [DTYPES.index(dtype)] if dtype else _VECTORS
        wrong = ~np.isin(table.dtype[chosen], allowed) | (table.ndim[chosen] != len(shape))
        if wrong.any():
            row = int(chosen[np.argmax(wrong)])
            raise FormatError(
                "dtype",
                None,
                "array {array!r} of a batch is {given}; it must be {allowed} of {dimensions} dimensions",
                array=name,
                given=f"{DTYPES[int(table.dtype[row])]}{table.shape(row)}",
                allowed=" or ".join(DTYPES[one] for one in allowed),
                dimensions=len(shape),
            )
        for rule, found in zip(shape, (table.rows[chosen], table.columns[chosen]), strict=False):
            letter, more = (None, rule) if isinstance(rule, int) else rule
            if isinstance(rule, int):
                right = np.full(found.size, rule)
            elif letter is None:
                continue
            else:
                known = sizes.setdefault(letter, np.full(table.size, -1))
                own = known[table.batch[chosen]]
                right = np.where(own < 0, np.maximum(found, more), own + more)
                known[table.batch[chosen]] = right - more
            if (found != right).any():
                row = int(np.argmax(found != right))
                raise FormatError(
                    "shape",
                    None,
                    "array {array!r} of a batch has the shape {given}; {size} is the size elsewhere",
                    array=name,
                    given=table.shape(int(chosen[row])),
                    size=int(right[row]),
                )
    return sizes


def _check_groups(table: _Table) -> None:
    """Check that arrays which belong together are present together."""
    for group in GROUPS:
        has = table.present[:, [NUMBER[name] for name in group]]
        partly = np.flatnonzero(has.any(axis=1) & ~has.all(axis=1))
        if partly.size:
            there, absent = (group[int(np.argmax(has[partly[0]] == which))] for which in (True, False))
            raise FormatError(
                "missing", None, "array {array!r} of a batch is there without {absent!r}", array=there, absent=absent
            )
    for name, pair in EITHER.items():
        kinds = table.present[:, [NUMBER[one] for one in pair]].sum(axis=1)
        wrong = kinds != table.present[:, NUMBER[name]]
        if wrong.any():
            raise FormatError(
                "conflict",
                None,
                "a batch has {given} of the arrays {one!r} and {other!r}; with {array!r} it must have one",
                given=int(kinds[wrong][0]),
                one=pair[0],
                other=pair[1],
                array=name,
            )


def _join_offsets(batches: Batches, name: str, data: str) -> None:
    """Replace the offsets of each batch by those of the joined data, after checking that they ascend over its own."""
    offsets, rows, sizes = batches.arrays[name], batches.rows[name], batches.count(data)
    held = rows > 0
    lasts = np.cumsum(rows)[held] - 1
    is_first = np.zeros(offsets.size, np.bool_)
    is_first[lasts + 1 - rows[held]] = True
    falls = (offsets[1:] < offsets[:-1]) & ~is_first[1:]
    if offsets[is_first].any() or falls.any() or (offsets[lasts] != sizes[held]).any() or sizes[~held].any():
        raise FormatError(
            "order",
            None,
            "array {array!r} of a batch does not ascend from 0 over the rows of {data!r}",
            array=name,
            data=data,
        )
    batches.rows[name] = np.maximum(rows - 1, 0)
    begin = np.repeat(np.cumsum(sizes) - sizes, batches.rows[name])
    batches.arrays[name] = np.concatenate([[0], offsets[~is_first] + begin]).astype(np.int64)


def _check_numbers(batches: Batches, sizes: dict[str, Rows]) -> None:
    """Check that slots, places and counts are in their ranges, which each batch extends."""
    passages, entities = (batches.count(name) for name in ("passage.length", "entity.word"))
    after = batches.before.passages + np.cumsum(passages), batches.before.entities + np.cumsum(entities)
    before = after[0] - passages, after[1] - entities
    types, relations, documents, languages = (
        np.maximum(sizes.get(letter, np.full(batches.size, 0)), 0) for letter in "TRDJ"
    )

    def check(name: str, least: Rows | int, most: Rows | int, columns: Any = None) -> None:
        if name not in batches.arrays:
            return
        values = batches.arrays[name] if columns is None else batches.arrays[name][:, columns]
        ends = [np.repeat(np.broadcast_to(end, batches.size), batches.rows[name]) for end in (least, most)]
        low, high = (end if values.ndim == 1 else end[:, None] for end in ends)
        if (values < low).any() or (values >= high).any():
            raise FormatError(
                "range",
                None,
                "array {array!r} of a batch holds numbers outside {least} .. {most}",
                array=name,
                least=int(np.min(least)),
                most=int(np.max(most)) - 1,
            )

    check("delete.passage", 0, before[0])
    check("delete.entity", 0, before[1])
    check("delete.alias.entity", 0, before[1])
    check("alias.entity", 0, after[1])
    check("passage.document", -1, documents)
    check("passage.language", -1, languages)
    check("entity.stated", 0, 2)
    check("stated.entity", 0, before[1])
    check("edge.passage", UNKNOWN, after[0])
    check("edge.type", 0, types)
    check("lexical.passage", 0, passages)
    check("lexical.count", 1, 2**31)
    check("edge.end", -after[1], after[0])
    check("delete.edge", -before[1], before[0], [0, 1])
    check("delete.edge", 0, types, 2)
    for name, most in (("fact.row", after[1]), ("delete.fact", before[1])):
        check(name, 0, most, [0, 2])
        check(name, 0, relations, 1)
    check("fact.row", 0, after[0], 3)
    weight = batches["edge.weight"]
    if not ((weight >= LEAST_WEIGHT) & (weight <= MOST_WEIGHT)).all():
        raise FormatError(
            "range", None, "array {array!r} of a batch holds weights outside 2^-64 .. 2^64", array="edge.weight"
        )
    states = sizes.get("B", np.ones(1))
    if (states[states >= 0] != 1).any():
        raise FormatError(
            "length", None, "a batch has {given} states of the index's source; it may have 1", given=int(states.max())
        )
