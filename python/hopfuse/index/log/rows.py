"""The rows that the records after a generation add, and the rows of the index after them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file.columns import StringColumn
from ..file.rows import GrownRows, all_rows, is_whole, take_strings
from ..file.sections import Section
from ..schema import ADDED, ARRAYS, ENTITIES, NUMBER, PASSAGES
from .aliases import AliasDelta
from .records import Slots, Values, empty

Rows = NDArray[np.int64]

#: The number of each array of rows.
ROW_NUMBER = NUMBER | {
    "lexical.term": NUMBER["lexical.passage"],  # a term for each entry
    "lexical_length": NUMBER["passage.length"],  # the number of terms of each passage
}
#: The array with the same rows, for columns that records and generations may lack.
LIKE = {
    name: ADDED[PASSAGES if array.sizes == (PASSAGES,) else ENTITIES]
    for name, array in ARRAYS.items()
    if array.default is not None
}


@dataclass(frozen=True, eq=False, repr=False)
class DeltaRows:
    """The rows of the first batches after a generation."""

    sections: Mapping[str, Section]
    """Those of the generation."""
    before: Slots
    after: Slots
    columns: Mapping[str, GrownRows]
    ends: Rows
    """By batch: the number of rows of each array up to it. The first row is that of the generation, 0."""
    edge_types: list[str]
    relations: list[str]
    """Edge types and relations of the generation and the batches, by their numbers."""
    terms: CommonNumbers | None
    """The numbers of terms; None if no batch has terms."""
    aliases: AliasDelta
    labels: Mapping[str, CommonNumbers]
    """The numbers of documents and languages."""
    metadata: dict[str, Values]
    """By slot, of the generation and of the batches; strings by their numbers."""
    metadata_strings: StringNumbers
    source: str | None

    @property
    def count(self) -> int:
        """The number of batches."""
        return len(self.ends) - 1

    def added(self, name: str) -> int:
        """Return the number of rows in the batches' arrays of a name; of offsets, the number of strings."""
        return int(self.ends[-1, ROW_NUMBER[name]])

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the rows of the batches alone."""
        whole = self.whole(name)
        return whole[len(whole) - self.added(name) :]

    def whole(self, name: str) -> NDArray[Any]:
        """Return the rows of the generation, if it has a section that the array continues, and of the batches."""
        if name not in self.columns:
            return base_rows(self.sections, name).whole()
        column = self.columns[name]
        return column.prefix(column.base + self.added(name))

    def column(self, name: str) -> StringColumn:
        """Return the strings of the generation and of the batches."""
        parts = (f"{name}.{part}" for part in ("offsets", "bytes"))
        return StringColumn(*(Section(part, self.whole(part)) for part in parts))

    def strings(self, name: str) -> list[str]:
        """Return only the strings of the batches."""
        column = self.column(name)
        return column.read(len(column) - self.added(f"{name}.offsets"), len(column))

    def taken(self, name: str, order: Rows) -> dict[str, Section]:
        """Return sections with the strings of the generation and the batches, in an order."""
        offsets, data = f"{name}.offsets", f"{name}.bytes"
        if offsets in self.columns:  # whose offsets were checked
            return take_strings(name, self.whole(offsets), self.whole(data), order)
        return take_strings(name, *self.column(name).arrays(), order)

    def knows(self, name: str) -> bool:
        """Return whether the generation has the section that an array continues, or a batch the array."""
        return name in self.columns or _follows(name) in self.sections

    def has(self, name: str) -> bool:
        """Return whether a batch has the array."""
        return name in self.columns and bool(self.added(name))

    def batch(self, name: str) -> Rows:
        """Return the batch of each row, counted from 0."""
        return np.repeat(np.arange(self.count), self.counts(name))

    def counts(self, name: str) -> Rows:
        """Return the number of rows of each batch."""
        return np.diff(self.ends[:, ROW_NUMBER[name]])


def base_rows(sections: Mapping[str, Section], name: str) -> Section:
    """Return the rows of a generation that an array of records continues."""
    section = sections.get(_follows(name))
    if section is not None:
        return section
    if name in LIKE:
        rows = {ADDED[PASSAGES]: "passage.length", ADDED[ENTITIES]: "entity.name.offsets"}[LIKE[name]]
        count = sections[rows].shape[0] - (rows != "passage.length")
        return Section(name, np.full(count, ARRAYS[name].default, ARRAYS[name].dtype))
    if name in ("lexical.term", "lexical.passage"):  # most of the rows, below 2^31
        return Section(name, np.zeros(0, np.int32))
    if name == "lexical_length":
        return Section(name, np.zeros(0, np.float64))
    return Section(name, np.zeros(1, np.int64) if name.endswith(".offsets") else empty(name))


def _follows(name: str) -> str:
    """Return the section that an array of records continues, or an empty name."""
    return (ARRAYS[name].follows or "") if name in ARRAYS else ""


class Places(NamedTuple):
    """Maps between slots and rows: from slot to row (-1 if deleted), and from row to slot."""

    passage: NDArray[np.int64]  # by slot
    passages: NDArray[np.int64]  # by row
    entity: NDArray[np.int64]  # by slot
    entities: NDArray[np.int64]  # by row
    num_names: int

    def nodes_of(self, base: Slots) -> NDArray[np.int64]:
        """Return the new node of each node of the generation, -1 if it was deleted."""
        entity = self.entity[: base.entities]
        return np.concatenate([self.passage[: base.passages], np.where(entity < 0, -1, entity + self.passages.size)])

    def nodes(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes of ends of edges, -1 for those that were deleted."""
        entity = self.entity[-1 - np.minimum(ends, -1)] if self.entity.size else np.full(ends.shape, -1)
        passage = self.passage[np.maximum(ends, 0)] if self.passage.size else np.full(ends.shape, -1)
        return np.where(ends >= 0, passage, np.where(entity < 0, -1, entity + self.passages.size))


def places(rows: DeltaRows, first_word: int, before: tuple[DeltaRows, Places] | None = None) -> Places:
    """Return the maps between slots and rows after the records; ``first_word`` is the first of the generation's words.

    ``before`` are those after fewer records of the same log.
    """
    if before is not None and all(
        rows.added(name) == before[0].added(name) for name in ("delete.passage", "delete.entity")
    ):
        return _more_places(rows, *before)
    alive = [np.ones(rows.after.passages, bool), np.ones(rows.after.entities, bool)]
    for lives, name in zip(alive, ("delete.passage", "delete.entity"), strict=True):
        lives[rows[name]] = False
    words = np.concatenate([np.arange(rows.before.entities) >= first_word, rows["entity.word"].astype(bool)])
    names, others = np.flatnonzero(alive[1] & ~words), np.flatnonzero(alive[1] & words)
    passages, entities = np.flatnonzero(alive[0]), np.concatenate([names, others])
    return places_of(_shared(passages), _shared(entities), rows.after, names.size)


def _shared(order: Rows) -> Rows:
    """Return the same rows, in memory that is shared if they are 0, 1, 2 and so on."""
    return all_rows(order.size) if is_whole(order, order.size) else order


def _more_places(rows: DeltaRows, before: DeltaRows, at: Places) -> Places:
    """Return the maps after further records that delete nothing."""
    passage, passages = _appended(at.passage, at.passages, rows.after.passages)
    words = rows["entity.word"][before.added("entity.word") :].astype(bool)
    if words.all() or at.num_names == at.entities.size:
        names = at.num_names + words.size - int(words.sum())
        if words.all() or not words[: names - at.num_names].any():  # new names, then new words
            return Places(passage, passages, *_appended(at.entity, at.entities, rows.after.entities), names)
    new = before.after.entities + np.arange(words.size)
    parts = at.entities[: at.num_names], new[~words], at.entities[at.num_names :], new[words]
    entities = np.concatenate(parts)
    return Places(passage, passages, _inverse(entities, rows.after.entities), entities, at.num_names + parts[1].size)


def _appended(place: Rows, order: Rows, slots: int) -> tuple[Rows, Rows]:
    """Return a map from slots to rows and its inverse with further slots, whose rows come last."""
    if is_whole(order, place.size):
        return all_rows(slots), all_rows(slots)
    new = np.arange(place.size, slots)
    return np.concatenate([place, new - place.size + order.size]), np.concatenate([order, new])


def places_of(passages: Rows, entities: Rows, slots: Slots, num_names: int) -> Places:
    """Return the maps for the slots of each row, ``num_names`` of the entities being names."""
    found = _inverse(passages, slots.passages), passages, _inverse(entities, slots.entities), entities
    return Places(*found, num_names)


def _inverse(order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    if is_whole(order, size):
        return order
    place = np.full(size, -1)
    place[order] = np.arange(order.size)
    return place


class CommonNumbers:
    """Numbers of values: those of a generation by their places, then new ones in the order in which they come.

    Parameters
    ----------
    known : sequence
        The generation's values, ascending.
    """

    def __init__(self, known: Sequence[Any]) -> None:
        self._known = known
        self._number: dict[Any, int] = {}
        self.added: list[Any] = []
        self._order = np.arange(len(known))

    def __len__(self) -> int:
        return len(self._known) + len(self.added)

    def __getitem__(self, number: int) -> Any:
        """Return the value of a number."""
        new = number - len(self._known)
        return self._known[number] if new < 0 else self.added[new]

    def find(self, value: Any) -> int:
        """Return the number of a value, or -1 if it has none."""
        found = self._number.get(value)
        if found is None:
            place = bisect_left(self._known, value)
            return place if place < len(self._known) and self._known[place] == value else -1
        return found

    def ascending(self) -> Rows:
        """Return all numbers in the order of their values; new ones are put among those that were there."""
        order, count = self._order, len(self)
        if order.size < count:
            ranked = sorted(range(order.size, count), key=self.__getitem__)
            before = [bisect_left(order, self[number], key=self.__getitem__) for number in ranked]
            self._order = order = np.insert(order, before, ranked)
        return order

    def number(self, value: Any) -> tuple[int, bool]:
        """Return the number of a value, and whether it is new."""
        found = self._number.get(value)
        if found is not None:
            return found, False
        place = bisect_left(self._known, value)
        is_new = place == len(self._known) or self._known[place] != value
        if is_new:
            place = len(self._known) + len(self.added)
            self.added.append(value)
        self._number[value] = place
        return place, is_new


class StringNumbers(CommonNumbers):
    """Numbers of strings, and the strings as a column."""

    def __init__(self, known: StringColumn) -> None:
        super().__init__(known)
        offsets, data = known.arrays()
        self._offsets, self._bytes = GrownRows(Section("offsets", offsets)), GrownRows(Section("bytes", data))

    def number(self, value: str) -> tuple[int, bool]:
        """Return the number of a string, and whether it is new."""
        number, is_new = super().number(value)
        if is_new:
            data = np.frombuffer(value.encode(), np.uint8)
            self._offsets.append(self._offsets.last()[None] + data.size)
            self._bytes.append(data)
        return number, is_new

    def taken(self, name: str, numbers: Rows) -> dict[str, Section]:
        """Return the sections of some of the strings, in an order."""
        last = int(numbers.max(initial=-1)) + 1
        offsets = self._offsets.prefix(last + 1)
        return take_strings(name, offsets, self._bytes.prefix(int(offsets[-1])), numbers)
