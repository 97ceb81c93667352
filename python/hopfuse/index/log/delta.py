"""The batches after a generation, in columns that grow with the log; a snapshot has a prefix of each."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..contents import Contents, labels_of
from ..file.columns import StringColumn, string_arrays, string_column
from ..file.rows import GrownRows
from ..file.sections import Section
from ..parts.passages import LABELS, Label, LabelNumbers, check_values
from .decode import NUMBER, Batches, read_batches
from .delta_metadata import MetadataDelta
from .encode import RULES, Slots, empty
from .frames import Frame
from .metadata import Values

Rows = NDArray[np.int64]
_NUMBER = NUMBER | {"lexical.term": NUMBER["lexical.passage"]}  # a term for each entry
_TYPES, _RELATIONS = len(RULES), len(RULES) + 1
#: Strings of batches, and the strings of a generation that they follow.
_STRINGS = {name: name for name in ("passage.id", "passage.title", "passage.text", "entity.name")}
_STRINGS |= {"alias.name": "entity.alias", "delete.alias.name": ""}
_STRINGS |= {label.strings: label.strings for label in LABELS}
#: Arrays of batches, and the sections of a generation that they follow.
_SECTIONS = {name: name for name in ("passage.id.number", "passage.length", "passage.vectors", "entity.vectors")}
_SECTIONS |= {name: name for name in ("passage.document", "document.number", "passage.language", "entity.stated")}
_SECTIONS |= {f"{name}.{part}": f"{of}.{part}" for name, of in _STRINGS.items() for part in ("offsets", "bytes")}
#: Names that get common numbers, and the sections with those of the generation.
_NAMES = {"edge.type_name": "graph.type_name", "fact.relation": "fact.relation"}
#: Arrays that hold places of such names, and in which column.
_PLACES = {
    "edge.type": ("edge.type_name", None),
    "delete.edge": ("edge.type_name", 2),
    "fact.row": ("fact.relation", 1),
    "delete.fact": ("fact.relation", 1),
}
#: Columns that batches and generations may lack: the array with the same rows, and the value of a row without one.
_DEFAULTS = {label.codes: ("passage.length", -1) for label in LABELS} | {"entity.stated": ("entity.word", 1)}
#: Arrays that no column is made of, by the beginnings of their names.
_READ = ("edge.type_name", "fact.relation", "lexical.term", "lexical.indptr", "metadata", "source.state")


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


@dataclass(frozen=True, eq=False, repr=False)
class DeltaRows:
    """The rows of the first batches after a generation."""

    base: Contents
    before: Slots
    after: Slots
    columns: Mapping[str, GrownRows]
    ends: Rows
    """By batch: the number of rows of each array up to it. The first row is that of the generation, 0."""
    edge_types: list[str]
    relations: list[str]
    """Edge types and relations of the generation and the batches, by their numbers."""
    new_terms: list[str]
    """Terms that the generation lacks; their numbers follow those of its terms."""
    metadata: dict[str, Values]
    metadata_strings: list[str]
    """What the codes in the metadata are places of."""
    source: str | None

    @property
    def count(self) -> int:
        """The number of batches."""
        return len(self.ends) - 1

    def added(self, name: str) -> int:
        """Return the number of rows in the batches' arrays of a name; of offsets, the number of strings."""
        return int(self.ends[-1, _NUMBER[name]])

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the rows of the batches alone."""
        whole = self.whole(name)
        return whole[len(whole) - self.added(name) :]

    def whole(self, name: str) -> NDArray[Any]:
        """Return the rows of the generation, if it has a section that the array continues, and of the batches."""
        if name not in self.columns:
            return _base_rows(self.base, name).whole()
        column = self.columns[name]
        return column.prefix(column.base + self.added(name))

    def column(self, name: str) -> StringColumn:
        """Return the strings of the generation and of the batches."""
        parts = (f"{name}.{part}" for part in ("offsets", "bytes"))
        return StringColumn(*(Section(part, self.whole(part)) for part in parts))

    def strings(self, name: str) -> list[str]:
        """Return the strings of the batches alone."""
        column = self.column(name)
        return column.read(len(column) - self.added(f"{name}.offsets"), len(column))

    def knows(self, name: str) -> bool:
        """Return whether the generation has the section that an array continues, or a batch the array."""
        return name in self.columns or _SECTIONS.get(name, "") in self.base.sections

    def has(self, name: str) -> bool:
        """Return whether a batch has the array."""
        return name in self.columns and bool(self.added(name))

    def batch(self, name: str) -> Rows:
        """Return the batch of each row, counted from 0."""
        return np.repeat(np.arange(self.count), self.counts(name))

    def counts(self, name: str) -> Rows:
        """Return the number of rows of each batch."""
        return np.diff(self.ends[:, _NUMBER[name]])


class _Joined:
    """Decoded batches, joined."""

    def __init__(self, base: Contents) -> None:
        self._base = base
        self._slots = self._before = Slots(base.num_passages, base.num_entities)
        self._columns: dict[str, GrownRows] = {}
        self._known = {of: _numbers(base, section) for of, section in _NAMES.items()}
        self._terms: dict[str, int] = {}
        self._new_terms: list[str] = []
        self._metadata = MetadataDelta(base.metadata.types)
        self._labels = {label: LabelNumbers(labels_of(base, label)) for label in LABELS}
        self._sources: list[tuple[int, str]] = []
        self._ends = GrownRows(Section("ends", np.zeros((1, len(RULES) + 2), np.int64)))
        self._size = 0

    def rows(self, count: int) -> DeltaRows:
        """Return the rows of the first batches."""
        ends = self._ends.prefix(count + 1)
        last, before = ends[-1].tolist(), self._before
        passages, entities = last[_NUMBER["passage.length"]], last[_NUMBER["entity.word"]]
        types, relations = (list(self._known[of]) for of in _NAMES)
        sources = [state for batch, state in self._sources if batch < count]
        return DeltaRows(
            self._base,
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
        batches = read_batches(payloads, self._slots, seq)
        _check_parts(self._base, batches)
        self._check_labels(batches)
        self._metadata.append(self._size, batches)
        arrays = dict(batches.arrays)
        counts = dict(batches.rows)
        for label in LABELS:
            self._number_labels(label, batches, arrays, counts)
        for name in _DEFAULTS:
            self._extend_or_fill(name, batches, arrays.pop(name, None))
            counts[name] = batches.count(_DEFAULTS[name][0])
        ends = np.zeros((batches.size, len(RULES) + 2), np.int64)
        for name, rows in counts.items():
            ends[:, _NUMBER[name]] = np.cumsum(rows)
        ends += self._ends.prefix(self._size + 1)[-1]
        numbers = {}
        for at, of in zip((_TYPES, _RELATIONS), _NAMES, strict=True):
            numbers[of], ends[:, at] = self._numbered(batches, of)
        for name, (of, column) in _PLACES.items():
            if name in arrays:
                arrays[name] = _in_common(batches, name, of, column, numbers[of])
        if "lexical.indptr" in arrays:
            terms = np.array([*map(self._term, batches.strings("lexical.term"))], np.int32)
            arrays["lexical.term"] = np.repeat(terms, np.diff(arrays["lexical.indptr"]))
            new = batches.count("passage.length")
            first = self._slots.passages + np.cumsum(new) - new
            slots = arrays["lexical.passage"] + np.repeat(first, batches.rows["lexical.passage"])
            arrays["lexical.passage"] = slots.astype(np.int32)
        for name, array in arrays.items():
            if not name.startswith(_READ) or name == "lexical.term":
                self._extend(name, array)
        if "source.state.offsets" in arrays:
            having = self._size + np.flatnonzero(batches.rows["source.state.offsets"])
            self._sources += zip(having.tolist(), batches.strings("source.state"), strict=True)
        self._ends.append(ends)
        self._slots = batches.after
        self._size += batches.size

    def _extend(self, name: str, array: NDArray[Any]) -> None:
        """Append rows to a column."""
        if name not in self._columns:
            self._columns[name] = GrownRows(_base_rows(self._base, name))
        column = self._columns[name]
        if name.endswith(".offsets"):
            array = array[1:] + column.last()
        column.append(array)

    def _extend_or_fill(self, name: str, batches: Batches, array: NDArray[Any] | None) -> None:
        """Append rows to a column that batches may lack; there is none until the generation or a batch has it."""
        (of, value), dtype = _DEFAULTS[name], RULES[name][0]
        if name not in self._columns:
            if array is None and name not in self._base.sections:
                return
            before = self._ends.prefix(self._size + 1)[-1, _NUMBER[of]]
            self._columns[name] = GrownRows(_base_rows(self._base, name))
            self._columns[name].append(np.full(before, value, dtype))
        rows = batches.count(of)
        filled = np.full(rows.sum(), value, dtype)
        if array is not None:
            filled[np.repeat(batches.rows[name] > 0, rows)] = array
        self._columns[name].append(filled)

    def _check_labels(self, batches: Batches) -> None:
        """Refuse labels that are not valid, and integers where others are strings."""
        for label in LABELS:
            kinds = (f"{label.strings}.offsets", label.numbers)
            if all(any(kind in one for one in (batches.arrays, self._columns, self._base.sections)) for kind in kinds):
                raise FormatError("conflict", None, "the passages' {what}s are strings and integers", what=label.what)
            check_values(label, _labels_of(batches, label), f"the {label.what}s of a batch")

    def _number_labels(
        self, label: Label, batches: Batches, arrays: dict[str, NDArray[Any]], counts: dict[str, Rows]
    ) -> None:
        """Leave the new ones of the labels of batches, and put common numbers in place of the codes."""
        if label.codes not in arrays:
            return
        values, known = _labels_of(batches, label), self._labels[label]
        name = label.numbers if label.numbers in arrays else f"{label.strings}.offsets"
        own = batches.count(name)
        found = [known.number(value) for value in values]
        is_new = np.array([new for _, new in found], np.bool_)
        fresh = [value for value, (_, new) in zip(values, found, strict=True) if new]
        batch = np.repeat(np.arange(batches.size), own)[is_new]
        counts[name] = np.bincount(batch, minlength=batches.size)
        if name == label.numbers:
            arrays[name] = np.array(fresh, np.int64)
        else:
            arrays |= string_arrays(label.strings, fresh)
            sizes = np.bincount(batch, np.diff(arrays[name]), minlength=batches.size)
            counts[f"{label.strings}.bytes"] = sizes.astype(np.int64)
        numbers = np.array([number for number, _ in found] + [-1], np.int32)
        begin = np.repeat(np.cumsum(own) - own, batches.rows[label.codes])
        codes = arrays[label.codes]
        arrays[label.codes] = numbers[np.where(codes < 0, -1, begin + codes)]

    def _numbered(self, batches: Batches, of: str) -> tuple[Rows, Rows]:
        """Return the common numbers of names, and how many are known after each batch."""
        known = self._known[of]
        before = len(known)
        numbers = np.array([known.setdefault(name, len(known)) for name in batches.strings(of)], np.int64)
        ends = np.full(batches.size, before)
        np.maximum.at(ends, np.repeat(np.arange(batches.size), batches.count(f"{of}.offsets")), numbers + 1)
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


def _labels_of(batches: Batches, label: Label) -> list[Any]:
    """Return the labels that batches name."""
    return batches[label.numbers].tolist() if label.numbers in batches.arrays else batches.strings(label.strings)


def _numbers(base: Contents, name: str) -> dict[str, int]:
    """Return the numbers of a generation's names."""
    if f"{name}.offsets" not in base.sections:
        return {}
    return {one: number for number, one in enumerate(string_column(base.sections, name))}


def _base_rows(base: Contents, name: str) -> Section:
    """Return the rows of a generation that an array of batches continues."""
    section = base.sections.get(_SECTIONS.get(name, ""))
    if section is not None:
        return section
    if name in _DEFAULTS:
        of, value = _DEFAULTS[name]
        count = base.num_passages if of == "passage.length" else base.num_entities
        return Section(name, np.full(count, value, RULES[name][0]))
    if name in ("lexical.term", "lexical.passage"):  # most of the rows, below 2^31
        return Section(name, np.zeros(0, np.int32))
    return Section(name, np.zeros(1, np.int64) if name.endswith(".offsets") else empty(name))


def _in_common(batches: Batches, name: str, of: str, column: int | None, numbers: Rows) -> NDArray[Any]:
    """Return an array with common numbers instead of the places of names in their own batches."""
    array, names = batches.arrays[name], batches.count(f"{of}.offsets")
    begin = np.repeat(np.cumsum(names) - names, batches.rows[name])
    if column is None:
        array = numbers[begin + array]
    else:
        array = array.copy()
        array[:, column] = numbers[begin + array[:, column]]
    return array


def _check_parts(base: Contents, batches: Batches) -> None:
    """Refuse batches with parts that their generation lacks, or with other vectors. Nothing large is read."""
    for name, rows in (("passage", batches.count("passage.length")), ("entity", batches.count("entity.word"))):
        vectors, section = batches.arrays.get(f"{name}.vectors"), base.sections.get(f"{name}.vectors")
        found = None if vectors is None else (vectors.dtype, *vectors.shape[1:])
        right = None if section is None or not rows.any() else (section.dtype, *section.shape[1:])
        if found != right or (right is not None and (batches.rows[f"{name}.vectors"] != rows).any()):
            raise FormatError(
                "dtype",
                None,
                "array {array!r} of a batch is {given}; the generation allows {allowed}",
                array=f"{name}.vectors",
                given=found,
                allowed=right,
            )
    for part, name in (("graph", "edge.end"), ("fact", "fact.row"), ("lexical", "lexical.indptr")):
        if f"{part}.indptr" not in base.sections and name in batches.arrays:
            raise FormatError(
                "missing", None, "array {array!r} of a batch has no such part in its generation", array=name
            )
