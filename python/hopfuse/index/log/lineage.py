"""What a merge made: the next one continues it, and rows of earlier snapshots are found in later ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file.rows import is_whole
from ..file.sections import Section
from .records import Slots
from .rows import DeltaRows, Places

Rows = NDArray[np.int64]


class MergeResult(NamedTuple):
    """A generation with the batches after it, merged. A later merge of the same generation continues it."""

    log: DeltaRows
    at: Places
    made: Mapping[str, Any]
    """Objects of the index that sections were made from, by their names in it."""
    sections: Mapping[str, Section]


class MergedSections(Mapping[str, Section]):
    """The sections of a merged index; the merge runs at the first access, and fills ``cache``."""

    def __init__(self, make: Callable[[], MergeResult], cache: dict[str, Any]) -> None:
        self._make: Callable[[], MergeResult] | None = make
        self._cache = cache
        self._merged: MergeResult | None = None
        self._lock = threading.Lock()

    @property
    def merged(self) -> MergeResult:
        """What was merged."""
        with self._lock:
            if self._merged is None:
                assert self._make is not None
                merged = self._make()
                self._cache.update(merged.made)
                self._merged, self._make = merged, None  # which holds the merge that this one continues
            return self._merged

    def __getitem__(self, name: str) -> Section:
        return self.merged.sections[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.merged.sections)

    def __len__(self) -> int:
        return len(self.merged.sections)


class RowMaps(NamedTuple):
    """The rows of an earlier state in a later one, from :meth:`hopfuse.Index.rows_since`; arrays are read-only.

    Attributes
    ----------
    passages : ndarray of int64, shape (P of the earlier state,)
        The row in the later state, -1 if the passage was deleted or replaced; ascending where it is not -1.
    entities : ndarray of int64, shape (E of the earlier state,)
        Likewise, but not ascending: new names come before the words.
    """

    passages: Rows
    entities: Rows


class Lineage:
    """The slots of a generation, and which of them those of the generation before became by its compaction."""

    def __init__(self) -> None:
        self._before: tuple[Lineage, Rows, Rows] | None = None

    def continues(self, before: Lineage, passages: Rows, entities: Rows) -> None:
        """Note the slots of this generation by the slots of the one before, -1 for what it lacks.

        What the one before continued is forgotten, so that the memory does not grow with compactions.
        """
        before._before = None
        self._before = before, passages, entities

    def slots_of(self, earlier: Lineage, rows: RowMaps) -> RowMaps | None:
        """Return slots of an earlier lineage as slots of this one, or None if this one does not continue it."""
        if earlier is self:
            return rows
        before = self._before  # read once: a compaction may forget it meanwhile
        if before is None or before[0] is not earlier:
            return None
        return RowMaps(*(_at(place, own) for place, own in zip(before[1:], rows, strict=True)))


def slots_of_rows(sections: Mapping[str, Section], counts: Slots) -> RowMaps:
    """Return the slots of the rows of an index: those of a generation are its rows."""
    if isinstance(sections, MergedSections):
        at = sections.merged.at
        return RowMaps(at.passages, at.entities)
    return RowMaps(np.arange(counts.passages), np.arange(counts.entities))


def rows_of_slots(sections: Mapping[str, Section], slots: RowMaps) -> RowMaps:
    """Return the rows in which an index has some slots, -1 for those that it has not."""
    if isinstance(sections, MergedSections):
        at = sections.merged.at
        slots = RowMaps(_at(at.passage, slots.passages), _at(at.entity, slots.entities))
    for rows in slots:
        rows.flags.writeable = False
    return slots


def _at(place: Rows, numbers: Rows) -> Rows:
    """Return the entries of ``place`` at some numbers; -1 stays."""
    if is_whole(numbers, numbers.size):
        return place[: numbers.size]
    if not numbers.size or numbers.min() >= 0:
        return place[numbers]
    found = np.full(numbers.size, -1)
    known = numbers >= 0
    found[known] = place[numbers[known]]
    return found
