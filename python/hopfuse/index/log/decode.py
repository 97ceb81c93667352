"""Read many batches of a log at once: the arrays of all are joined, and checked in one pass.

A log of small commits has thousands of batches, and reading them one by one takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..file.format import DTYPES, ENTRY, dtype_of
from ..parts.metadata_log import read_metadata
from ..schema import ADDED, ARRAYS, DOCUMENTS, EDGE_TYPES, EITHER, LANGUAGES, NUMBER, RELATIONS, STATES, VECTOR, Size
from .decode_one import read_one_batch
from .records import LEAST_WEIGHT, MOST_WEIGHT, LogRecords, Slots

Rows = NDArray[np.int64]
_TABLE = np.dtype(
    [("name", "S32"), ("dtype", "<u4"), ("ndim", "<u4")]
    + [(name, "<u8") for name in ("rows", "columns", "offset", "length")]
)
_HEAD, _MAX_SECTIONS = 8, 256
_NUMBER_OF_BYTES = {name.encode(): number for name, number in NUMBER.items()}
_VECTORS = [DTYPES.index(name) for name in ("float32", "float16", "bfloat16")]
_WIDTH = np.array([dtype_of(name).itemsize for name in DTYPES])
#: Strings of the batches by the name of their arrays.
_STRINGS = [name.removesuffix(".offsets") for name in ARRAYS if name.endswith(".offsets")]
#: Arrays that are present together, by group.
_GROUPS = {
    array.group: [one.name for one in ARRAYS.values() if one.group == array.group]
    for array in ARRAYS.values()
    if array.group
}


def read_records(payloads: Sequence[bytes | memoryview], before: Slots, first: int) -> LogRecords:
    """Return the batches of some payloads, after checking everything that a merge relies on.

    Raises
    ------
    FormatError
        A payload violates FORMAT.md; the message names its seq, where ``first`` belongs to the first payload.
    """
    if len(payloads) == 1 and (read := read_one_batch(payloads[0], before)) is not None:
        return read
    try:
        return _read(payloads, before)
    except FormatError as error:
        if len(payloads) == 1:
            raise error.at(f"seq {first}") from None
    for seq, payload in enumerate(payloads, first):
        before = read_records([payload], before, seq).after
    raise AssertionError("batches were refused together, but not one by one")


def _read(payloads: Sequence[bytes | memoryview], before: Slots) -> LogRecords:
    table = _table(payloads)
    sizes = _check_shapes(table)
    _check_groups(table)
    arrays, rows = dict[str, NDArray[Any]](), dict[str, Rows]()
    for number, name in enumerate(ARRAYS):
        chosen = table.of(number)
        if chosen.size:
            arrays[name], rows[name] = table.joined(chosen)
    records = LogRecords(arrays, rows, [], before, len(payloads))
    for name in _STRINGS:
        if f"{name}.offsets" in arrays:
            _join_offsets(records, f"{name}.offsets", f"{name}.bytes")
            records._column(name).check()
    if "lexical.indptr" in arrays:
        _join_offsets(records, "lexical.indptr", "lexical.passage")
    _check_numbers(records, sizes)
    if "metadata.type" in arrays:
        passages = records.count("passage.length")
        has = table.present[:, NUMBER["metadata.type"]]
        records.metadata.extend(read_metadata(arrays, rows, np.flatnonzero(has), passages))
    return records


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
        name, kinds = tuple(ARRAYS)[self.name[chosen[0]]], np.unique(self.dtype[chosen])
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
    present = np.zeros((sizes.size, len(ARRAYS)), np.bool_)
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
    """Check dtypes and shapes, and return the sizes of each record by what is counted, -1 if it has none."""
    sizes: dict[str, Rows] = {}
    for number, (name, array) in enumerate(ARRAYS.items()):
        chosen = table.of(number)
        if not chosen.size:
            continue
        allowed = _VECTORS if array.dtype == VECTOR else [DTYPES.index(array.dtype)]
        wrong = ~np.isin(table.dtype[chosen], allowed) | (table.ndim[chosen] != len(array.sizes))
        if wrong.any():
            row = int(chosen[np.argmax(wrong)])
            raise FormatError(
                "dtype",
                None,
                "array {array!r} of a batch is {given}; it must be {allowed} of {dimensions} dimensions",
                array=name,
                given=f"{DTYPES[int(table.dtype[row])]}{table.shape(row)}",
                allowed=" or ".join(DTYPES[one] for one in allowed),
                dimensions=len(array.sizes),
            )
        for size, found in zip(array.sizes, (table.rows[chosen], table.columns[chosen]), strict=False):
            right = _right(size, found, table, chosen, sizes)
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


def _right(size: Size | int, found: Rows, table: _Table, chosen: Rows, sizes: dict[str, Rows]) -> Rows:
    """Return the sizes that arrays must have, and note those of records that had none."""
    if isinstance(size, int):
        return np.full(found.size, size)
    if not size.what:
        return found
    known = sizes.setdefault(size.what, np.full(table.size, -1))
    own = known[table.batch[chosen]]
    right: Rows = np.where(own < 0, np.maximum(found, size.more), own + size.more)
    known[table.batch[chosen]] = right - size.more
    return right


def _check_groups(table: _Table) -> None:
    """Check that arrays which belong together are present together."""
    for group in _GROUPS.values():
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


def _join_offsets(records: LogRecords, name: str, data: str) -> None:
    """Replace the offsets of each batch by those of the joined data, after checking that they ascend over its own."""
    offsets, rows, sizes = records.arrays[name], records.rows[name], records.count(data)
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
    records.rows[name] = np.maximum(rows - 1, 0)
    begin = np.repeat(np.cumsum(sizes) - sizes, records.rows[name])
    records.arrays[name] = np.concatenate([[0], offsets[~is_first] + begin]).astype(np.int64)


def _check_numbers(records: LogRecords, sizes: dict[str, Rows]) -> None:
    """Check that slots, places and counts are in their ranges, which each record extends."""
    bounds = _bounds(records, sizes)
    for name, array in records.arrays.items():
        for column, numbers in enumerate(ARRAYS[name].numbers):
            least, most = (bounds[end] if isinstance(end, str) else end for end in (numbers.least, numbers.most))
            low, high = (np.repeat(np.broadcast_to(end, records.size), records.rows[name]) for end in (least, most))
            values = array if array.ndim == 1 else array[:, column]
            if (values < low).any() or (values >= high).any():
                raise FormatError(
                    "range",
                    None,
                    "array {array!r} of a batch holds numbers outside {least} .. {most}",
                    array=name,
                    least=int(np.min(least)),
                    most=int(np.max(most)) - 1,
                )
    weight = records["edge.weight"]
    if not ((weight >= LEAST_WEIGHT) & (weight <= MOST_WEIGHT)).all():
        raise FormatError(
            "range", None, "array {array!r} of a batch holds weights outside 2^-64 .. 2^64", array="edge.weight"
        )
    states = sizes.get(STATES.what, np.ones(1))
    if (states[states >= 0] != STATES.count).any():
        raise FormatError(
            "length", None, "a batch has {given} states of the index's source; it may have 1", given=int(states.max())
        )


def _bounds(records: LogRecords, sizes: dict[str, Rows]) -> dict[str, Rows]:
    """Return the bounds of numbers for each record, by the names that :class:`Numbers` has."""
    bounds = {
        size.what: np.maximum(sizes.get(size.what, np.zeros(records.size, np.int64)), 0)
        for size in (EDGE_TYPES, RELATIONS, DOCUMENTS, LANGUAGES)
    }
    for (size, name), before in zip(ADDED.items(), records.before, strict=True):
        what, new = size.what, records.count(name)
        after = before + np.cumsum(new)
        bounds |= {f"new {what}": new, what: after, f"old {what}": after - new}
        bounds |= {f"-{what}": -after, f"-old {what}": new - after}
    return bounds
