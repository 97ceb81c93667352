"""The batches after a generation, in columns that grow with the log; a snapshot has a prefix of each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..contents import Contents, labels_of
from ..file.columns import check_offsets, string_column
from ..file.rows import GrownRows
from ..file.sections import Section
from ..parts import passages, terms
from ..parts.metadata_log import MetadataDelta
from ..parts.passages import LABELS
from ..schema import ARRAYS, COMMON_NAMES
from .aliases import AliasDelta
from .decode import read_records
from .decode_one import of_record
from .frames import Frame
from .records import LogRecords, Slots
from .rows import LIKE, ROW_NUMBER, CommonNumbers, DeltaRows, base_rows

Rows = NDArray[np.int64]
_TYPES, _RELATIONS = len(ARRAYS), len(ARRAYS) + 1
_ALIAS_ARRAYS = {"alias.entity", "delete.alias.entity"}
#: Columns that are made of the arrays of a batch.
_DERIVED = ("lexical.term", "lexical_length")


class Delta:
    """The batches after a generation. Their frames are decoded when rows are first needed. Thread-safe.

    Slots of passages and entities are the rows of the generation, and then count on. Types of edges, relations and
    terms get numbers that are common to the generation and all batches.
    """

    def __init__(self, base: Contents, label: str) -> None:
        self._base, self._label = base, label
        self._lock = threading.RLock()
        self._times: list[int] = []
        self._pending: list[Frame] = []
        self._joined: _Joined | None = None

    def append(self, count: int, frames: Iterable[Frame]) -> None:
        """Append frames after the first ``count`` ones.

        Those that were decoded already are left out. Others that are held are discarded: their commit failed.
        """
        with self._lock:
            decoded = len(self._times) - len(self._pending)
            first = max(count, decoded)
            new = [*frames][first - count :]
            self._times[first:] = [frame.time for frame in new]
            self._pending[first - decoded :] = new
            if len(self._pending) > 1:  # which are decoded together, of their payloads
                begin = max(first - decoded - 1, 0)
                self._pending[begin:] = [frame._replace(record=None) for frame in self._pending[begin:]]

    @property
    def held(self) -> int:
        """The number of batches that are held."""
        return len(self._times)

    def times(self, count: int) -> list[int]:
        """Return the times of the first batches."""
        return self._times[:count]

    def rows(self, count: int) -> DeltaRows:
        """Return the rows of the first batches.

        Raises
        ------
        FormatError
            A batch violates FORMAT.md, or does not fit the generation.
        """
        with self._lock:
            if self._joined is None:
                self._joined = _Joined(self._base)
            new = count - (len(self._times) - len(self._pending))
            if new > 0:
                try:
                    self._joined.append(self._pending[:new])
                except FormatError as error:
                    raise error.at(self._label) from None
                del self._pending[:new]
            return self._joined.rows(count)


class _Joined:
    """Decoded batches, joined."""

    def __init__(self, base: Contents) -> None:
        self._base = base
        self._slots = self._before = Slots(base.num_passages, base.num_entities)
        self._columns: dict[str, GrownRows] = {}
        self._known = {of: _numbers(base, section) for of, section in COMMON_NAMES.items()}
        self._terms: CommonNumbers | None = None
        self._metadata = MetadataDelta(base.metadata, base.num_passages)
        self._labels = {label.what: CommonNumbers(labels_of(base, label).values) for label in LABELS}
        self._aliases = AliasDelta(base.sections["entity.alias.rows"].whole())
        self._sources: list[tuple[int, str]] = []
        self._relations: list[str] = []
        self._ends = GrownRows(Section("ends", np.zeros((1, len(ARRAYS) + 2), np.int64)))
        self._size = 0

    def rows(self, count: int) -> DeltaRows:
        """Return the rows of the first batches."""
        ends = self._ends.prefix(count + 1)
        last, before = ends[-1].tolist(), self._before
        new = last[ROW_NUMBER["passage.length"]], last[ROW_NUMBER["entity.word"]]
        types, known = (self._known[of] for of in COMMON_NAMES)
        if len(self._relations) != len(known):
            self._relations = list(known)
        last_relation = last[_RELATIONS] if count else len(known)
        sources = [state for batch, state in self._sources if batch < count]
        return DeltaRows(
            self._base.sections,
            before,
            Slots(before.passages + new[0], before.entities + new[1]),
            dict(self._columns),
            ends,
            list(types)[: last[_TYPES] if count else None],
            self._relations if last_relation == len(known) else self._relations[:last_relation],
            self._terms,
            self._aliases,
            self._labels,
            self._metadata.values(count, before.passages + new[0]),
            self._metadata.strings,
            sources[-1] if sources else None,
        )

    def append(self, frames: Sequence[Frame]) -> None:
        """Decode batches, check them, and append their rows; those of this process's writer are decoded already."""
        record = frames[0].record if len(frames) == 1 else None
        if record is None:
            records = read_records([frame.payload for frame in frames], self._slots, frames[0].seq)
        else:
            records = of_record(record)
        _check_parts(self._base, records)
        for label in LABELS:
            passages.check_records(label, records, {*self._columns, *self._base.sections})
        self._metadata.append(self._size, records)
        arrays = dict(records.arrays)
        counts = dict(records.rows)
        for label in LABELS:
            passages.number_labels(label, self._labels[label.what], records, arrays, counts)
        for name, like in LIKE.items():
            self._extend_or_fill(name, records, arrays.pop(name, None))
            counts[name] = records.count(like)
        ends = np.zeros((records.size, len(ARRAYS) + 2), np.int64)
        if counts:
            ends[:, [ROW_NUMBER[name] for name in counts]] = np.cumsum([*counts.values()], axis=1).T
        ends += self._ends.prefix(self._size + 1)[-1]
        numbers = {}
        for at, of in zip((_TYPES, _RELATIONS), COMMON_NAMES, strict=True):
            numbers[of], ends[:, at] = self._numbered(records, of)
        for name in records.arrays:
            for column, own in enumerate(ARRAYS[name].numbers):
                if own.names:
                    arrays[name] = _in_common(records, name, own.names, column, numbers[own.names])
        if "lexical.indptr" in arrays:
            if self._terms is None:
                assert self._base.lexical is not None
                self._terms = CommonNumbers(self._base.lexical.terms)
            arrays |= terms.number_entries(self._terms, records)
        if "lexical.indptr" in self._base.sections:
            arrays["lexical_length"] = terms.added_lengths(records)
        for name, array in arrays.items():
            if name in _DERIVED or ARRAYS[name].follows is not None:
                self._extend(name, array)
        if not _ALIAS_ARRAYS.isdisjoint(records.arrays):
            self._aliases.append(self._size, records, self._alias)
        if "source.state.offsets" in arrays:
            having = self._size + np.flatnonzero(records.rows["source.state.offsets"])
            self._sources += zip(having.tolist(), records.strings("source.state"), strict=True)
        self._ends.append(ends)
        self._slots = records.after
        self._size += records.size

    def _alias(self, place: int) -> bytes:
        """Return an alias of the generation or of the batches."""
        offsets, data = (
            self._columns.get(name) or GrownRows(base_rows(self._base.sections, name))
            for name in ("alias.name.offsets", "alias.name.bytes")
        )
        begin, end = offsets.prefix(place + 2)[place:].tolist()
        return data.prefix(end)[begin:].tobytes()

    def _extend(self, name: str, array: NDArray[Any]) -> None:
        """Append rows to a column."""
        if name not in self._columns:
            base = base_rows(self._base.sections, name)
            if name.endswith(".offsets"):
                check_offsets(base, base_rows(self._base.sections, f"{name.removesuffix('.offsets')}.bytes").shape[0])
            self._columns[name] = GrownRows(base)
        column = self._columns[name]
        if name.endswith(".offsets"):
            array = array[1:] + column.last()
        column.append(array)

    def _extend_or_fill(self, name: str, records: LogRecords, array: NDArray[Any] | None) -> None:
        """Append rows to a column that batches may lack; there is none until the generation or a batch has it."""
        of, value, dtype = LIKE[name], ARRAYS[name].default, ARRAYS[name].dtype
        if name not in self._columns:
            if array is None and name not in self._base.sections:
                return
            before = self._ends.prefix(self._size + 1)[-1, ROW_NUMBER[of]]
            self._columns[name] = GrownRows(base_rows(self._base.sections, name))
            self._columns[name].append(np.full(before, value, dtype))
        rows = records.count(of)
        filled = np.full(rows.sum(), value, dtype)
        if array is not None:
            filled[np.repeat(records.rows[name] > 0, rows)] = array
        self._columns[name].append(filled)

    def _numbered(self, records: LogRecords, of: str) -> tuple[Rows, Rows]:
        """Return the common numbers of names, and how many are known after each batch."""
        known = self._known[of]
        before = len(known)
        numbers = np.array([known.setdefault(name, len(known)) for name in records.strings(of)], np.int64)
        ends = np.full(records.size, before)
        np.maximum.at(ends, np.repeat(np.arange(records.size), records.count(f"{of}.offsets")), numbers + 1)
        return numbers, np.maximum.accumulate(ends)


def _numbers(base: Contents, name: str) -> dict[str, int]:
    """Return the numbers of a generation's names."""
    if f"{name}.offsets" not in base.sections:
        return {}
    return {one: number for number, one in enumerate(string_column(base.sections, name))}


def _in_common(records: LogRecords, name: str, of: str, column: int, numbers: Rows) -> NDArray[Any]:
    """Return an array with common numbers instead of the places of names in their own batches."""
    array, names = records.arrays[name], records.count(f"{of}.offsets")
    begin = np.repeat(np.cumsum(names) - names, records.rows[name])
    if array.ndim == 1:
        return np.asarray(numbers[begin + array])
    array = array.copy()
    array[:, column] = numbers[begin + array[:, column]]
    return array


def _check_parts(base: Contents, records: LogRecords) -> None:
    """Refuse batches with parts that their generation lacks, or with other vectors. Nothing large is read."""
    for name, rows in (("passage", records.count("passage.length")), ("entity", records.count("entity.word"))):
        vectors, section = records.arrays.get(f"{name}.vectors"), base.sections.get(f"{name}.vectors")
        found = None if vectors is None else (vectors.dtype, *vectors.shape[1:])
        right = None if section is None or not rows.any() else (section.dtype, *section.shape[1:])
        if found != right or (right is not None and (records.rows[f"{name}.vectors"] != rows).any()):
            raise FormatError(
                "dtype",
                None,
                "array {array!r} of a batch is {given}; the generation allows {allowed}",
                array=f"{name}.vectors",
                given=found,
                allowed=right,
            )
    for part, name in (("graph", "edge.end"), ("fact", "fact.row"), ("lexical", "lexical.indptr")):
        if f"{part}.indptr" not in base.sections and name in records.arrays:
            raise FormatError(
                "missing", None, "array {array!r} of a batch has no such part in its generation", array=name
            )
