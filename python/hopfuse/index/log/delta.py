"""The batches after a generation, in columns that grow with the log; a snapshot has a prefix of each."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..contents import Contents, labels_of
from ..file.columns import string_arrays, string_column
from ..file.rows import GrownRows
from ..file.sections import Section
from ..parts.metadata_log import MetadataDelta
from ..parts.passages import LABELS, Label, LabelNumbers, check_values
from ..schema import ARRAYS, COMMON_NAMES
from .decode import LogRecords, read_records
from .encode import Slots
from .frames import Frame
from .rows import LIKE, ROW_NUMBER, DeltaRows, base_rows

Rows = NDArray[np.int64]
_TYPES, _RELATIONS = len(ARRAYS), len(ARRAYS) + 1


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
                payloads = [frame.payload for frame in self._pending[:new]]
                try:
                    self._joined.append(payloads, self._pending[0].seq)
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
        self._terms: dict[str, int] = {}
        self._new_terms: list[str] = []
        self._metadata = MetadataDelta(base.metadata.types)
        self._labels = {label: LabelNumbers(labels_of(base, label)) for label in LABELS}
        self._sources: list[tuple[int, str]] = []
        self._ends = GrownRows(Section("ends", np.zeros((1, len(ARRAYS) + 2), np.int64)))
        self._size = 0

    def rows(self, count: int) -> DeltaRows:
        """Return the rows of the first batches."""
        ends = self._ends.prefix(count + 1)
        last, before = ends[-1].tolist(), self._before
        passages, entities = last[ROW_NUMBER["passage.length"]], last[ROW_NUMBER["entity.word"]]
        types, relations = (list(self._known[of]) for of in COMMON_NAMES)
        sources = [state for batch, state in self._sources if batch < count]
        return DeltaRows(
            self._base.sections,
            before,
            Slots(before.passages + passages, before.entities + entities),
            dict(self._columns),
            ends,
            types[: last[_TYPES]] if count else types,
            relations[: last[_RELATIONS]] if count else relations,
            list(self._new_terms),
            self._metadata.values(count, passages),
            self._metadata.strings(),
            sources[-1] if sources else None,
        )

    def append(self, payloads: Sequence[bytes | memoryview], seq: int) -> None:
        """Decode batches, check them, and append their rows."""
        records = read_records(payloads, self._slots, seq)
        _check_parts(self._base, records)
        self._check_labels(records)
        self._metadata.append(self._size, records.metadata, int(records.count("passage.length").sum()))
        arrays = dict(records.arrays)
        counts = dict(records.rows)
        for label in LABELS:
            self._number_labels(label, records, arrays, counts)
        for name, like in LIKE.items():
            self._extend_or_fill(name, records, arrays.pop(name, None))
            counts[name] = records.count(like)
        ends = np.zeros((records.size, len(ARRAYS) + 2), np.int64)
        for name, rows in counts.items():
            ends[:, ROW_NUMBER[name]] = np.cumsum(rows)
        ends += self._ends.prefix(self._size + 1)[-1]
        numbers = {}
        for at, of in zip((_TYPES, _RELATIONS), COMMON_NAMES, strict=True):
            numbers[of], ends[:, at] = self._numbered(records, of)
        for name in records.arrays:
            for column, own in enumerate(ARRAYS[name].numbers):
                if own.names:
                    arrays[name] = _in_common(records, name, own.names, column, numbers[own.names])
        if "lexical.indptr" in arrays:
            terms = np.array([*map(self._term, records.strings("lexical.term"))], np.int32)
            arrays["lexical.term"] = np.repeat(terms, np.diff(arrays["lexical.indptr"]))
            new = records.count("passage.length")
            first = self._slots.passages + np.cumsum(new) - new
            slots = arrays["lexical.passage"] + np.repeat(first, records.rows["lexical.passage"])
            arrays["lexical.passage"] = slots.astype(np.int32)
        for name, array in arrays.items():
            if name == "lexical.term" or ARRAYS[name].follows is not None:
                self._extend(name, array)
        if "source.state.offsets" in arrays:
            having = self._size + np.flatnonzero(records.rows["source.state.offsets"])
            self._sources += zip(having.tolist(), records.strings("source.state"), strict=True)
        self._ends.append(ends)
        self._slots = records.after
        self._size += records.size

    def _extend(self, name: str, array: NDArray[Any]) -> None:
        """Append rows to a column."""
        if name not in self._columns:
            self._columns[name] = GrownRows(base_rows(self._base.sections, name))
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

    def _check_labels(self, records: LogRecords) -> None:
        """Refuse labels that are not valid, and integers where others are strings."""
        for label in LABELS:
            kinds = (f"{label.strings}.offsets", label.numbers)
            if all(any(kind in one for one in (records.arrays, self._columns, self._base.sections)) for kind in kinds):
                raise FormatError("conflict", None, "the passages' {what}s are strings and integers", what=label.what)
            check_values(label, _labels_of(records, label), f"the {label.what}s of a batch")

    def _number_labels(
        self, label: Label, records: LogRecords, arrays: dict[str, NDArray[Any]], counts: dict[str, Rows]
    ) -> None:
        """Leave the new ones of the labels of batches, and put common numbers in place of the codes."""
        if label.codes not in arrays:
            return
        values, known = _labels_of(records, label), self._labels[label]
        name = label.numbers if label.numbers in arrays else f"{label.strings}.offsets"
        own = records.count(name)
        found = [known.number(value) for value in values]
        is_new = np.array([new for _, new in found], np.bool_)
        fresh = [value for value, (_, new) in zip(values, found, strict=True) if new]
        batch = np.repeat(np.arange(records.size), own)[is_new]
        counts[name] = np.bincount(batch, minlength=records.size)
        if name == label.numbers:
            arrays[name] = np.array(fresh, np.int64)
        else:
            arrays |= string_arrays(label.strings, fresh)
            sizes = np.bincount(batch, np.diff(arrays[name]), minlength=records.size)
            counts[f"{label.strings}.bytes"] = sizes.astype(np.int64)
        numbers = np.array([number for number, _ in found] + [-1], np.int32)
        begin = np.repeat(np.cumsum(own) - own, records.rows[label.codes])
        codes = arrays[label.codes]
        arrays[label.codes] = numbers[np.where(codes < 0, -1, begin + codes)]

    def _numbered(self, records: LogRecords, of: str) -> tuple[Rows, Rows]:
        """Return the common numbers of names, and how many are known after each batch."""
        known = self._known[of]
        before = len(known)
        numbers = np.array([known.setdefault(name, len(known)) for name in records.strings(of)], np.int64)
        ends = np.full(records.size, before)
        np.maximum.at(ends, np.repeat(np.arange(records.size), records.count(f"{of}.offsets")), numbers + 1)
        return numbers, np.maximum.accumulate(ends)

    def _term(self, word: str) -> int:
        """Return the number of a term."""
        if word not in self._terms:
            matrix = self._base.lexical
            assert matrix is not None
            place = bisect_left(matrix.terms, word)
            if place == len(matrix.terms) or matrix.terms[place] != word:
                place = len(matrix.terms) + len(self._new_terms)
                self._new_terms.append(word)
            self._terms[word] = place
        return self._terms[word]


def _labels_of(records: LogRecords, label: Label) -> list[Any]:
    """Return the labels that batches name."""
    return records[label.numbers].tolist() if label.numbers in records.arrays else records.strings(label.strings)


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
