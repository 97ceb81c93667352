"""Metadata in the log: that of many records is read at once, grows with the log, and is merged with a generation's.

Records with the same columns are joined, and checked in one pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...errors import FormatError
from ..file.columns import StringColumn
from ..file.rows import GrownRows
from ..file.sections import Arrays, ArraysOrSections, Section
from ..log.records import LogRecords, MetadataRows, Values
from ..log.rows import DeltaRows
from .metadata import STORES, Metadata, MetadataColumn, check_ascending, check_values, types_of
from .metadata_build import DTYPES, subset

Codes = NDArray[np.int32]

Rows = NDArray[np.int64]


def read_metadata(arrays: Arrays, rows: Mapping[str, Rows], having: Rows, passages: Rows) -> list[MetadataRows]:
    """Return the metadata of joined batches.

    Parameters
    ----------
    arrays, rows
        Of the batches: see :class:`hopfuse.index.log.records.LogRecords`.
    having : ndarray of int64
        The batches that have metadata.
    passages : ndarray of int64
        The number of passages of each batch.

    Raises
    ------
    FormatError
    """
    if (rows["metadata.name.offsets"] != rows["metadata.type"]).any():
        raise FormatError("length", None, "metadata of a batch has names and types of different numbers of columns")
    whole = _Joined(
        arrays,
        rows,
        {name: np.cumsum(count) - count for name, count in rows.items() if name.startswith("metadata.")},
        _strings(arrays, "metadata.name"),
        _strings(arrays, "metadata.value"),
    )
    groups: dict[tuple[Any, ...], list[int]] = {}
    types = arrays["metadata.type"].tolist()
    begin, count = whole.first["metadata.type"].tolist(), rows["metadata.type"].tolist()
    for batch in having.tolist():
        own = slice(begin[batch], begin[batch] + count[batch])
        groups.setdefault((*types[own], *whole.names[own]), []).append(batch)
    return [_read_group(whole, np.array(group), passages) for group in groups.values()]


def read_one(arrays: Arrays, texts: Mapping[str, list[str]], passages: int) -> MetadataRows | None:
    """Return the metadata of one batch with so many passages, whose strings were read, or None if it is not valid."""
    names, strings, codes = texts["metadata.name"], texts["metadata.value"], arrays["metadata.type"]
    if len(names) != codes.size or any(a >= b for a, b in pairwise(strings)):
        return None
    read, items_end, next_of = dict[str, Values](), 0, dict.fromkeys(("present", *STORES.values()), 0)

    def part(store: str) -> NDArray[Any]:
        begin = next_of[store]
        next_of[store] = begin + passages + (store == "list")
        return arrays[f"metadata.{store}"][begin : next_of[store]]

    label = "metadata of a batch"
    try:
        for name, kind in types_of(label, names, codes).items():
            present, data = part("present"), part(STORES[kind])
            items, lists = np.zeros(0, np.int32), data
            if kind == "strings":
                if data.size != passages + 1 or data[0] != items_end:
                    return None
                items_end = int(data[-1])
                items, lists, data = arrays["metadata.item"][lists[0] : items_end], lists - lists[0], np.diff(data)
                if (data < 0).any() or items.size != lists[-1]:
                    return None
            if present.size != passages or data.size != passages:
                return None
            check_values(label, name, kind, present, lists, items, len(strings))
            read[name] = Values(kind, present.view(np.bool_), data.view(np.bool_) if kind == "bool" else data, items)
    except FormatError:
        return None
    if any(next_of[store] != arrays[f"metadata.{store}"].size for store in next_of):
        return None
    if items_end != arrays["metadata.item"].size:
        return None
    return MetadataRows(read, strings, np.arange(passages), 0)


class _Joined(NamedTuple):
    """The arrays of all batches, where those of each begin, and their strings."""

    arrays: Arrays
    rows: Mapping[str, Rows]
    first: Mapping[str, Rows]
    names: list[str]
    values: list[str]

    def columns(self, batch: int) -> slice:
        first = int(self.first["metadata.type"][batch])
        return slice(first, first + int(self.rows["metadata.type"][batch]))

    def runs(self, name: str, group: Rows, begin: Rows, end: Rows) -> tuple[NDArray[Any], Rows]:
        """Return entries begin .. end-1 of each batch of a group, and their numbers."""
        start = self.first[name][group]
        indptr = np.stack([start + begin, start + end], axis=1).reshape(-1)
        return entries_of(indptr, self.arrays[name], 2 * np.arange(group.size))


def _read_group(whole: _Joined, group: Rows, passages: Rows) -> MetadataRows:
    """Return the metadata of some batches with the same columns."""
    label, size, rows = "metadata of a batch", passages[group], whole.rows
    own = whole.columns(int(group[0]))
    names, codes = whole.names[own], whole.arrays["metadata.type"][own]
    types = list(types_of(label, names, codes).values())
    stores = [STORES[kind] for kind in types]
    for store, count in [("present", len(types)), *((store, stores.count(store)) for store in set(STORES.values()))]:
        found, right = rows[f"metadata.{store}"][group], count * (size + (store == "list"))
        if (found != right).any():
            raise FormatError(
                "length",
                None,
                "metadata.{store} has {given} entries; the columns have {allowed}",
                store=store,
                given=int(found.sum()),
                allowed=int(right.sum()),
            ).at(label)

    def part(store: str, at: int) -> NDArray[Any]:
        """Return the entries of the column at a place of a store, in all batches."""
        width = size + (store == "list")
        return whole.runs(f"metadata.{store}", group, at * width, (at + 1) * width)[0]

    strings, known = _strings_of(whole, group, label)
    read, items_end = {}, np.zeros(group.size, np.int64)
    for at, (name, kind, store) in enumerate(zip(names, types, stores, strict=True)):
        present, data = part("present", at), part(store, stores[:at].count(store))
        items, lists = np.zeros(0, np.int32), data
        if kind == "strings":
            last = np.cumsum(size + 1) - 1
            begin, end = data[last - size], data[last]
            data = np.delete(np.diff(data), last[:-1])
            if (begin != items_end).any() or (data < 0).any() or (end > rows["metadata.item"][group]).any():
                raise FormatError(
                    "order",
                    None,
                    "the lists of {column!r} do not ascend from those before, over the items",
                    column=name,
                ).at(label)
            items_end = end
            items = _in_group(*whole.runs("metadata.item", group, begin, end), known, label, name)
            lists = np.concatenate([[0], np.cumsum(data)])
        elif kind == "string":
            lists = data = _in_group(data, size, known, label, name)
        check_values(label, name, kind, present, lists, items, len(strings))
        read[name] = Values(kind, present.view(np.bool_), data.view(np.bool_) if kind == "bool" else data, items)
    if (items_end != rows["metadata.item"][group]).any():
        raise FormatError("damaged", None, "there are items that belong to no list").at(label)
    indptr = np.append(np.cumsum(passages) - passages, passages.sum())
    slots, _ = entries_of(indptr, np.arange(indptr[-1]), group)
    return MetadataRows(read, strings, slots, int(group[0]))


def _strings_of(whole: _Joined, group: Rows, label: str) -> tuple[list[str], tuple[Rows, Rows]]:
    """Return the strings of some batches, and where in them those of each batch begin, and how many they are."""
    count, begin = (of["metadata.value.offsets"][group] for of in (whole.rows, whole.first))
    strings: list[str] = []
    for start, size in zip(begin.tolist(), count.tolist(), strict=True):
        own = whole.values[start : start + size]
        check_ascending(label, own)
        strings += own
    return strings, (np.cumsum(count) - count, count)


def _in_group(
    codes: NDArray[np.int32], sizes: Rows, known: tuple[Rows, Rows], label: str, name: str
) -> NDArray[np.int32]:
    """Return codes of strings as places among those of all batches; -1 stays."""
    begin, count = (np.repeat(part, sizes) for part in known)
    if (codes >= count).any():
        raise FormatError(
            "range", None, "in the column {column!r} the index of a string is outside those of its batch", column=name
        ).at(label)
    return np.where(codes < 0, codes, codes + begin).astype(np.int32)


def _strings(arrays: Arrays, name: str) -> list[str]:
    return list(StringColumn(*(Section(f"{name}.{part}", arrays[f"{name}.{part}"]) for part in ("offsets", "bytes"))))


# ---- The columns of the log ----


class MetadataDelta:
    """Columns over the added passages, deleted ones among them; strings have common codes."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = dict(types)
        self._columns: dict[str, _Column] = {}
        self._codes: dict[str, int] = {}
        self._passages = 0

    def values(self, count: int, passages: int) -> dict[str, Values]:
        """Return the columns of the first batches, which add so many passages."""
        return {name: one.values(passages) for name, one in self._columns.items() if one.since < count}

    def strings(self) -> list[str]:
        """Return the strings by their codes."""
        return list(self._codes)

    def append(self, size: int, records: LogRecords) -> None:
        """Append the passages of batches after the first ``size`` ones.

        Raises
        ------
        FormatError
            A column has another type than before; nothing is appended.
        """
        groups, types = records.metadata, dict(self._types)
        for group in groups:
            for name, values in group.columns.items():
                if types.setdefault(name, values.type) != values.type:
                    raise FormatError(
                        "conflict",
                        None,
                        "the metadata {column!r} are of the type {given}; before, they are {allowed}",
                        column=name,
                        given=values.type,
                        allowed=types[name],
                    )
        self._types = types
        codes = [
            np.array([self._codes.setdefault(text, len(self._codes)) for text in group.strings], np.int32)
            for group in groups
        ]
        for group in groups:
            for name, values in group.columns.items():
                if name not in self._columns:
                    self._columns[name] = _Column(values.type, size + group.first, self._passages)
        new = int(records.count("passage.length").sum())
        for name, column in self._columns.items():
            parts = [
                (group.passages, _coded(group.columns[name], own))
                for group, own in zip(groups, codes, strict=True)
                if name in group.columns
            ]
            column.append(new, parts)
        self._passages += new


class _Column:
    def __init__(self, kind: str, since: int, passages: int) -> None:
        self.since, self._type = since, kind
        dtypes = (np.bool_, _dtype(kind), np.int32)
        self._present, self._data, self._items = (GrownRows(Section(kind, np.zeros(0, dtype))) for dtype in dtypes)
        self.append(passages, [])

    def values(self, passages: int) -> Values:
        present, data = self._present.prefix(passages), self._data.prefix(passages)
        items = int(data.sum()) if self._type == "strings" else 0
        return Values(self._type, present, data, self._items.prefix(items))

    def append(self, count: int, parts: list[tuple[NDArray[np.int64], Values]]) -> None:
        """Append passages, of which some have values."""
        present, data = np.zeros(count, np.bool_), missing(self._type, count)
        for passages, values in parts:
            present[passages], data[passages] = values.present, values.data
        self._present.append(present)
        self._data.append(data)
        if self._type == "strings" and parts:
            of = np.concatenate([np.repeat(passages, values.data) for passages, values in parts])
            items = np.concatenate([values.items for _, values in parts])
            self._items.append(items[np.argsort(of, kind="stable")])


def missing(kind: str, count: int) -> NDArray[Any]:
    """Return the data of passages without a value; of lists, their numbers of items."""
    return np.full(count, -1 if kind == "string" else 0, _dtype(kind))


def _dtype(kind: str) -> Any:
    return np.bool_ if kind == "bool" else DTYPES[STORES[kind]]


def _coded(values: Values, codes: NDArray[np.int32]) -> Values:
    """Return values with other codes of strings."""
    if values.type == "strings":
        return values._replace(items=codes[values.items])
    if values.type == "string":
        data = np.full(values.data.size, -1, np.int32)
        data[values.present] = codes[values.data[values.present]]
        return values._replace(data=data)
    return values


# ---- The columns after the log ----


def merge(metadata: Metadata, rows: DeltaRows, passages: NDArray[np.int64]) -> ArraysOrSections:
    """Return the sections ``metadata.*`` of the passages of ascending slots, or none without columns."""
    counts = rows.before.passages, rows.after.passages - rows.before.passages
    types = dict(metadata.types) | {name: values.type for name, values in rows.metadata.items()}
    if not types:
        return {}
    strings, own, added = _joined_strings(metadata, rows.metadata_strings)
    columns = {}
    for name, kind in types.items():
        parts = [
            _coded(_base_values(metadata[name]) if name in metadata else _nothing(kind, counts[0]), own),
            _coded(rows.metadata.get(name) or _nothing(kind, counts[1]), added),
        ]
        present, data, items = (np.concatenate(part) for part in list(zip(*parts, strict=True))[1:])
        if kind == "strings":
            data = np.concatenate([[0], np.cumsum(data)]).astype(np.int64)
        columns[name] = MetadataColumn(name, kind, present, data, items, strings)  # type: ignore[arg-type]
    return subset(columns, passages)


def _joined_strings(metadata: Metadata, added: list[str]) -> tuple[list[str], Codes, Codes]:
    """Return all strings, ascending, and the place in them of each of the generation's and of the added ones."""
    own = list(next(iter(metadata.values())).strings) if metadata else []
    new = sorted(text for text in added if not _is_among(text, own))
    before = [bisect_left(own, text) for text in new]
    strings = np.insert(np.array(own, object), before, np.array(new, object)).tolist() if new else own
    places = np.arange(len(own)) + np.searchsorted(before, np.arange(len(own)), side="right")
    return strings, places.astype(np.int32), np.array([bisect_left(strings, text) for text in added], np.int32)


def _is_among(text: str, ascending: list[str]) -> bool:
    place = bisect_left(ascending, text)
    return place < len(ascending) and ascending[place] == text


def _base_values(column: MetadataColumn) -> Values:
    data = np.diff(column.data) if column.type == "strings" else column.data
    return Values(column.type, column.present, data, column.items)


def _nothing(kind: str, count: int) -> Values:
    return Values(kind, np.zeros(count, np.bool_), missing(kind, count), np.zeros(0, np.int32))
