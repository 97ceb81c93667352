"""Read the metadata of many batches at once: those with the same columns are joined, and checked in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...errors import FormatError
from ..file.columns import StringColumn
from ..file.sections import Section
from ..parts.metadata import STORES, check_ascending, check_values, types_of

Rows = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]


class Values(NamedTuple):
    """The values of a column: of lists, ``data`` holds the numbers of items."""

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


def read_metadata(arrays: Arrays, rows: Mapping[str, Rows], having: Rows, passages: Rows) -> list[MetadataRows]:
    """Return the metadata of joined batches.

    Parameters
    ----------
    arrays, rows
        Of the batches: see :class:`hopfuse.index.log.decode.Batches`.
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
