"""Metadata in the log: that of many records is read at once, grows with the log, and is merged with a generation's.

Records with the same columns are joined, and checked in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of, indptr_of_counts
from ...errors import FormatError
from ..file.columns import SortedStrings, StringColumn, string_arrays
from ..file.rows import GrownRows, all_rows, is_whole
from ..file.sections import Arrays, ArraysOrSections, LazySection, Section, as_section
from ..log.records import LogRecords, MetadataRows, Values
from ..log.rows import DeltaRows, StringNumbers
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


# ---- The columns of a generation and its log ----


class MetadataDelta:
    """Columns over the passages of a generation and those that batches add, deleted ones among them.

    Strings have numbers that are common to both.
    """

    def __init__(self, metadata: Metadata, passages: int) -> None:
        column = next((metadata[name] for name in metadata), None)
        none = string_arrays("metadata.value", ())
        self.strings = StringNumbers(
            StringColumn(*(Section(name, array) for name, array in none.items())) if column is None else column.strings
        )
        self._columns = {name: _Column(metadata.types[name], -1, passages, metadata[name]) for name in metadata}
        self._passages = passages

    def values(self, count: int, passages: int) -> dict[str, Values]:
        """Return the columns of the generation and the first batches, over so many passages."""
        return {name: one.values(passages) for name, one in self._columns.items() if one.since < count}

    def append(self, size: int, records: LogRecords) -> None:
        """Append the passages of batches after the first ``size`` ones.

        Raises
        ------
        FormatError
            A column has another type than before; nothing is appended.
        """
        groups, types = records.metadata, {name: column.type for name, column in self._columns.items()}
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
        codes = [np.array([self.strings.number(text)[0] for text in group.strings], np.int32) for group in groups]
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
    """A column that grows; of lists, the data are the offsets of the items."""

    def __init__(self, kind: str, since: int, passages: int, base: MetadataColumn | None = None) -> None:
        self.since, self.type = since, kind
        if base is None:
            data = missing(kind, passages) if kind != "strings" else np.zeros(passages + 1, np.int64)
            parts = np.zeros(passages, np.bool_), data, np.zeros(0, np.int32)
        else:
            parts = base.present, base.data, base.items
        self._present, self._data, self._items = (GrownRows(Section(kind, part)) for part in parts)

    def values(self, passages: int) -> Values:
        present, is_list = self._present.prefix(passages), self.type == "strings"
        data = self._data.prefix(passages + is_list)
        return Values(self.type, present, data, self._items.prefix(int(data[-1]) if is_list else 0))

    def append(self, count: int, parts: list[tuple[NDArray[np.int64], Values]]) -> None:
        """Append passages, of which some have values."""
        present, data = np.zeros(count, np.bool_), missing(self.type, count)
        for passages, values in parts:
            present[passages], data[passages] = values.present, values.data
        self._present.append(present)
        self._data.append(data if self.type != "strings" else self._data.last() + np.cumsum(data))
        if self.type == "strings" and parts:
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


def merge(log: DeltaRows, passages: Rows) -> tuple[Metadata, ArraysOrSections]:
    """Return the metadata of the passages of ascending slots, and their sections, or none without columns."""
    found = MergedMetadata(log.metadata, log.metadata_strings, passages)
    return found, found.sections() if found else {}


class MergedMetadata(Metadata):
    """The metadata of the remaining passages of a generation and its log; a column is made when it is first read."""

    def __init__(self, values: Mapping[str, Values], strings: StringNumbers, passages: Rows) -> None:
        super().__init__({}, passages.size)
        self._values, self._numbers, self._slots = values, strings, passages
        self.types = {name: one.type for name, one in values.items()}

    def sections(self) -> ArraysOrSections:
        """Return the sections of all columns, which are made when they are read."""
        strings = [f"metadata.{name}.{part}" for name in ("name", "value") for part in ("offsets", "bytes")]
        dtypes = {f"metadata.{name}": dtype for name, dtype in DTYPES.items()} | {"metadata.type": np.uint8}
        dtypes |= {name: np.int64 if name.endswith("offsets") else np.uint8 for name in strings}
        return {name: LazySection(name, dtype, partial(self._array, name)) for name, dtype in dtypes.items()}

    def _array(self, name: str) -> NDArray[Any]:
        return as_section(name, self._arrays[name]).whole()

    @cached_property
    def _arrays(self) -> ArraysOrSections:
        return subset(self, all_rows(self._passages))

    @cached_property
    def _kept(self) -> Rows:
        """The numbers of the strings that a passage has, in the order of the strings."""
        order = self._numbers.ascending()
        seen = np.zeros(order.size + 1, np.bool_)
        for name, kind in self.types.items():
            if kind in ("string", "strings"):
                _, data, items = self._taken[name]
                seen[items if kind == "strings" else data] = True  # -1 is the last one
        return order[seen[order]]

    @cached_property
    def _place(self) -> Codes:
        """The place of each number's string among those that a passage has; the last one is -1."""
        place = np.full(len(self._numbers) + 1, -1, np.int32)
        place[self._kept] = np.arange(self._kept.size, dtype=np.int32)
        return place

    @cached_property
    def _taken(self) -> dict[str, tuple[NDArray[Any], ...]]:
        """Which passages have a value, and the data and items of each column, with the numbers of strings."""
        return {name: _of_passages(values, self._slots) for name, values in self._values.items()}

    def _read(self, name: str) -> MetadataColumn:
        """Return a column."""
        kind = self.types[name]
        present, data, items = self._taken[name]
        if self._strings is None:
            self._strings = SortedStrings.of(self._numbers.taken("metadata.value", self._kept), "metadata.value")
        if kind == "string":
            data = self._place[data]
        return MetadataColumn(name, kind, present, data, self._place[items], self._strings)


def _of_passages(values: Values, slots: Rows) -> tuple[NDArray[Any], ...]:
    """Return which passages of ascending slots have a value, and their data and items."""
    present, data, items = values[1:]
    if is_whole(slots, present.size):
        return present, data, items
    if values.type != "strings":
        return present[slots], data[slots], items
    counts, kept = np.diff(data), np.zeros(present.size, np.bool_)
    kept[slots] = True
    return present[slots], indptr_of_counts(counts[slots]), items[np.repeat(kept, counts)]
