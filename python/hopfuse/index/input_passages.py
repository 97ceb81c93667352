"""Read the table of passages batch by batch into sections of an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import indptr_of_counts
from ..errors import InputError
from ..io import tables
from ..io.tables import KEYS, Placed, Places, Presence, Table, first_repeated, refuse_repeated, row_ids
from .left_out import Rows
from .parts.metadata_build import check_types, metadata_arrays, types_of
from .parts.passages import LABELS, Label, coded_arrays
from .spool import Buffer, Memory, Vectors

Arrays = dict[str, NDArray[Any]]


class _Batch(NamedTuple):
    """What is kept of a batch."""

    table: Table
    ids: Sequence[Any]
    strings: dict[str, list[bytes]]
    texts: list[str]
    labels: list[Sequence[Any] | None]
    metadata: list[Mapping[str, Any] | None]


class Passages:
    """The sections ``passage.*`` except vectors, and ``metadata.*``.

    Parameters
    ----------
    buffer : callable
        Makes a buffer for titles, and one for texts.
    column_types : dict of str to str, optional
        Types of metadata by which each batch is checked; without it, all rows are checked at the end.
    """

    def __init__(self, buffer: Callable[[], Buffer], column_types: dict[str, str] | None = None) -> None:
        self._column_types = column_types
        self._places = Places()
        self._ids = _Ids(self._places)
        self._strings = {"title": buffer(), "text": buffer()}
        self._lengths: dict[str, list[NDArray[np.int64]]] = {name: [] for name in self._strings}
        self._words: list[NDArray[np.int32]] = []
        self._labels = [_Labels(label) for label in LABELS]
        self._metadata: list[Any] = []
        self._types: dict[str, str] = {}

    def checked(self, table: Table) -> _Batch:
        """Return what is kept of a batch; nothing is kept yet, so that a part of it may be checked again."""
        texts = tables.texts(table, "text")
        titles = tables.texts(table, "title", default="")
        encoded = {name: _encoded(table, name, given) for name, given in (("title", titles), ("text", texts))}
        labels = [one.checked(table) for one in self._labels]
        metadata = tables.objects(table, "metadata")
        if self._column_types is not None and table.num_rows:
            metadata_arrays(_without_nulls(metadata), self._column_types, table.where)
        return _Batch(table, self._ids.checked(table), encoded, texts, labels, metadata)

    def keep(self, batch: _Batch) -> None:
        """Keep a batch that was checked."""
        self._ids.keep(batch.table, batch.ids)
        self._places.add(batch.table)
        for name, encoded in batch.strings.items():
            self._lengths[name].append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            self._strings[name].append(b"".join(encoded))
        self._words.append(np.fromiter((len(text.split()) for text in batch.texts), np.int32, len(batch.texts)))
        for one, values in zip(self._labels, batch.labels, strict=True):
            one.keep(batch.table, values)
        self._metadata += batch.metadata
        self._types |= batch.table.types
        if self._column_types is not None:
            self._column_types |= types_of(batch.metadata, self._column_types)

    def __len__(self) -> int:
        return self._places.num_rows

    def rows(self) -> dict[Any, int]:
        """Return the row of each id."""
        return {id: row for row, id in enumerate(self._ids.all())}

    def read(self, batches: Iterable[Table], vectors: Vectors, rows: Rows) -> None:
        """Check all batches and keep them; their vectors go to ``vectors``."""
        table = None
        for table in batches:
            for batch, corpus in rows.read("passages", table, lambda part: (self.checked(part), vectors.checked(part))):
                self.keep(batch)
                vectors.keep(batch.table, corpus)
        if table is None:
            raise InputError(
                "missing", "passages", "{field} has no batch; give one without rows, which states the columns"
            )
        self._ids.check()

    def metadata(self, types: Any) -> Arrays:
        """Return the sections ``metadata.*``, whose columns have some types that are given."""
        return metadata_arrays(self._metadata, self._types_beside(types), self._places.where)

    def arrays(self) -> Arrays:
        """Return the sections ``passage.*``, ``document.*`` and ``language.*``."""
        made = self._ids.arrays()
        for name, buffer in self._strings.items():
            offsets = indptr_of_counts(np.concatenate([np.zeros(0, np.int64), *self._lengths[name]]))
            made[f"passage.{name}.offsets"] = offsets
            made[f"passage.{name}.bytes"] = buffer.array(np.uint8, (int(offsets[-1]),))
        made["passage.length"] = np.concatenate([np.zeros(0, np.int32), *self._words])
        for labels in self._labels:
            made |= labels.arrays()
        return made

    def _types_beside(self, given: Any) -> dict[str, str]:
        """Return the types of metadata columns: the given ones, and Arrow's types for columns without values."""
        used = {name for row in self._metadata if row for name, value in row.items() if value is not None}
        types = check_types(given)
        return types | {name: kind for name, kind in self._types.items() if name not in used and name not in types}


def _without_nulls(rows: Iterable[Mapping[str, Any] | None]) -> list[Mapping[str, Any] | None]:
    """Return metadata without missing values, of which a warning would say that they have no type."""
    return [row and {name: value for name, value in row.items() if value is not None} for row in rows]


def _encoded(table: Table, name: str, strings: Sequence[str]) -> list[bytes]:
    """Return strings as UTF-8."""
    encoded: list[bytes] = []
    try:
        encoded.extend(map(str.encode, strings))
    except UnicodeEncodeError as error:
        raise InputError(
            "syntax", name, "{column!r} cannot be written as UTF-8: {error}", column=table.label(name), error=error
        ).at(table.place(len(encoded))) from None
    return encoded


class _Ids:
    """The ids of passages, distinct strings or integers, kept as sections are; without a column, the row numbers."""

    def __init__(self, places: Places) -> None:
        self._places, self._presence = places, Presence("id", KEYS)
        self._before: Placed | None = None
        self._numbers: list[NDArray[np.int64]] = []  # integers, or the hashes of strings
        self._lengths: list[NDArray[np.int64]] = []
        self._bytes = Memory()

    def checked(self, table: Table) -> Sequence[Any]:
        """Return the ids of a batch, or nothing without ids."""
        if not self._presence.of(table) or not table.num_rows:
            return ()
        found: Sequence[Any] = row_ids(table, self._before)
        if isinstance(found[0], str):
            _encoded(table, "id", found)
        return found

    def keep(self, table: Table, found: Sequence[Any]) -> None:
        """Keep the ids of a batch."""
        if not found:
            return
        self._before = self._before or (table.where(0), found[0])
        if isinstance(found[0], str):
            encoded = _encoded(table, "id", found)
            self._lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            self._bytes.append(b"".join(encoded))
            found = list(map(hash, found))
        self._numbers.append(np.array(found, np.int64))

    def check(self) -> None:
        """Refuse an id that rows of two batches have; compare only ids whose hashes are equal."""
        if len(self._numbers) < 2:
            return
        numbers = np.concatenate(self._numbers)
        ordered = np.sort(numbers)
        rows = np.flatnonzero(np.isin(numbers, ordered[1:][ordered[1:] == ordered[:-1]]))
        ids = self._some(rows)
        if len(set(ids)) < len(ids):
            at, earlier = first_repeated(ids)
            refuse_repeated("id", ids[at], *(self._places.where(int(rows[one])) for one in (at, earlier)))

    def arrays(self) -> Arrays:
        """Return the sections."""
        if self._lengths:
            offsets = indptr_of_counts(np.concatenate(self._lengths))
            return {
                "passage.id.offsets": offsets,
                "passage.id.bytes": self._bytes.array(np.uint8, (int(offsets[-1]),)),
            }
        own = np.concatenate(self._numbers) if self._numbers else np.arange(self._places.num_rows)
        return {"passage.id.number": own}

    def all(self) -> Sequence[Any]:
        """Return all ids."""
        return self._some(np.arange(self._places.num_rows))

    def _some(self, rows: NDArray[np.int64]) -> Sequence[Any]:
        made = self.arrays()
        if "passage.id.number" in made:
            found: list[int] = made["passage.id.number"][rows].tolist()
            return found
        ends, data = made["passage.id.offsets"], made["passage.id.bytes"].data
        spans = zip(ends[rows].tolist(), ends[rows + 1].tolist(), strict=True)
        return [str(data[first:end], "utf-8") for first, end in spans]


class _Labels:
    """The documents or the languages of passages, as numbers of distinct ones."""

    def __init__(self, label: Label) -> None:
        self._label = label
        self._codes: list[NDArray[np.int32]] = []
        self._number: dict[str | int | None, int] = {None: -1}
        self._before: Placed | None = None

    def checked(self, table: Table) -> Sequence[Any] | None:
        """Return the labels of a batch, or None without such a column."""
        return self._label.read(table, self._label.what, self._before) if self._label.what in table.columns else None

    def keep(self, table: Table, values: Sequence[Any] | None) -> None:
        """Keep the labels of a batch."""
        if values is None:
            self._codes.append(np.full(table.num_rows, -1, np.int32))
            return
        if self._before is None:
            at = next((at for at, value in enumerate(values) if value is not None), None)
            self._before = None if at is None else (table.where(at), values[at])
        number = self._number
        codes = (number[value] if value in number else number.setdefault(value, len(number) - 1) for value in values)
        self._codes.append(np.fromiter(codes, np.int32, len(values)))

    def arrays(self) -> Arrays:
        """Return the sections."""
        codes = np.concatenate([np.zeros(0, np.int32), *self._codes])
        return coded_arrays(self._label, codes, [value for value in self._number if value is not None])
