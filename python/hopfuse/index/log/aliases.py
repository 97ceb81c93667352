"""The aliases of a generation and its log, and when they are deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..file.rows import GrownRows
from ..file.sections import Section
from ..membership import is_in
from .records import LogRecords

Rows = NDArray[np.int64]
#: The number of no batch.
_NEVER = np.iinfo(np.int64).max


class AliasDelta:
    """The aliases of a generation and of its log: whose they are, and which batch deletes them.

    The aliases of earlier batches are in the arrays of later ones; a deletion by a later batch counts only for those.
    """

    def __init__(self, rows: Rows) -> None:
        entity = np.repeat(np.arange(rows.size - 1), np.diff(rows))
        self._entity = GrownRows(Section("entity", entity))
        self._stated = GrownRows(Section("batch", np.full(entity.size, -1)))
        self._deleted = np.full(entity.size, _NEVER)

    def append(self, size: int, records: LogRecords, name_of: Callable[[int], bytes]) -> None:
        """Append the aliases of batches after the first ``size`` ones; ``name_of`` returns that of an alias."""
        added, gone = records["alias.entity"], records["delete.alias.entity"]
        batches = np.arange(size, size + records.size)
        self._entity.append(added)
        self._stated.append(np.repeat(batches, records.count("alias.entity")))
        self._deleted = np.concatenate([self._deleted, np.full(added.size, _NEVER)]) if added.size else self._deleted
        if not gone.size:
            return
        when = np.repeat(batches, records.count("delete.alias.entity")).tolist()
        names = [name.encode() for name in records.strings("delete.alias.name")]
        deletions: dict[tuple[int, bytes], list[int]] = {}  # the batches that delete each, ascending
        for one, name, batch in zip(gone.tolist(), names, when, strict=True):
            deletions.setdefault((one, name), []).append(batch)
        entity, stated = (column.prefix(self._deleted.size) for column in (self._entity, self._stated))
        for place in np.flatnonzero(is_in(entity, gone) & (self._deleted == _NEVER)).tolist():
            own = deletions.get((int(entity[place]), name_of(place)), [])
            later = bisect_right(own, int(stated[place]))
            if later < len(own):
                self._deleted[place] = own[later]

    def rows(self, count: int, aliases: int) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the entity of each of the first aliases, and which of them the first batches do not delete."""
        return self._entity.prefix(aliases), self._deleted[:aliases] >= count
