"""The metadata of the passages that batches add, in columns that grow with the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..file.rows import GrownRows
from ..file.sections import Section
from ..parts.metadata import STORES
from ..parts.metadata_build import DTYPES
from .decode import Batches
from .metadata import Values


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

    def append(self, size: int, batches: Batches) -> None:
        """Append the passages of batches after the first ``size`` ones.

        Raises
        ------
        FormatError
            A column has another type than before; nothing is appended.
        """
        groups, types = batches.metadata, dict(self._types)
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
        new = int(batches.count("passage.length").sum())
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
    """Return values with common codes of strings."""
    if values.type == "strings":
        return values._replace(items=codes[values.items])
    if values.type == "string":
        data = np.full(values.data.size, -1, np.int32)
        data[values.present] = codes[values.data[values.present]]
        return values._replace(data=data)
    return values
