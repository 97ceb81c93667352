"""The metadata of passages by slot, after the last batch: filters of a change are tested on it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .contents import Contents
from .file.rows import all_rows
from .file.sections import Arrays, Section
from .filters import Where
from .log.records import LogRecord
from .log.rows import DeltaRows
from .parts import metadata_log
from .parts.metadata import Metadata, MetadataColumn, types_of
from .parts.metadata_build import metadata_arrays

#: Batches that are joined when so many came, and the most passages that they may have: the arrays of a small batch take
#: many times the memory of its values.
_BATCHES, _PASSAGES = 64, 1024


class _Piece:
    """The metadata of some consecutive slots, which is read when it is first needed: few changes have a filter."""

    def __init__(self, arrays: Arrays, size: int) -> None:
        self.size, self._arrays = size, arrays

    @cached_property
    def metadata(self) -> Metadata:
        """The metadata."""
        return _metadata_of(self._arrays, self.size)


class _Run(NamedTuple):
    """The metadata of consecutive slots, in pieces."""

    first: int
    size: int
    pieces: list[_Piece]


class SlotMetadata:
    """The metadata of all passages that ever existed, by slot.

    That of small batches which came since it was read is joined, some at a time. All of it is joined when a filter is
    tested, in runs of which each is longer than the next: over all filters, a row is joined as often as there are runs.

    Attributes
    ----------
    types : dict
        The type of each column.
    """

    def __init__(self, base: Contents, delta: DeltaRows) -> None:
        self.types = dict(base.metadata.types) | {name: one.type for name, one in delta.metadata.items()}
        self._delta = delta
        self._known: Metadata | None = None  # of the slots that existed when the names were read
        self._runs: list[_Run] = []
        self._fresh = 0  # the last runs, which are batches

    def append(self, batch: LogRecord) -> None:
        """Add the passages of a batch."""
        count = batch.after.passages - batch.before.passages
        if count:
            arrays = {name: array for name, array in batch.arrays.items() if name.startswith("metadata.")}
            if arrays:
                self.types |= types_of(_label("metadata.type"), batch.strings("metadata.name"), arrays["metadata.type"])
            self._runs.append(_Run(batch.before.passages, count, [_Piece(arrays, count)]))
            self._fresh += 1
            if self._fresh == _BATCHES:
                self._join_fresh()

    def row(self, slot: int) -> dict[str, Any]:
        """Return the values of a passage by column, without missing ones."""
        if slot < self._delta.after.passages:
            return self._read().row(slot)
        run = self._runs[bisect_right(self._runs, slot, key=lambda run: run.first) - 1]
        at, place = slot - run.first, 0
        while at >= run.pieces[place].size:
            at -= run.pieces[place].size
            place += 1
        return run.pieces[place].metadata.row(at)

    def mask(self, only: Where) -> NDArray[np.bool_]:
        """Return which passages a filter allows, by slot, whether or not they still exist.

        Raises
        ------
        InputError
            The filter has a column that does not exist, or a value that does not fit its column's type.
        """
        self._join()
        parts = [(self._read(), self._delta.after.passages)]
        parts += [(piece.metadata, piece.size) for run in self._runs for piece in run.pieces]
        return np.concatenate([only.mask(self._with_all_columns(one, count)) for one, count in parts])

    def _read(self) -> Metadata:
        if self._known is None:
            self._known, _ = metadata_log.merge(self._delta, all_rows(self._delta.after.passages))
        return self._known

    def _join_fresh(self) -> None:
        """Join the last batches, unless they are large."""
        last = self._runs[-self._fresh :]
        size, self._fresh = sum(run.size for run in last), 0
        if size <= _PASSAGES:
            pieces = [piece for run in last for piece in run.pieces]
            self._runs[-len(last) :] = [self._joined(_Run(last[0].first, size, pieces))]

    def _join(self) -> None:
        """Join runs until each is longer than the next, and the pieces of each."""
        runs: list[_Run] = []
        for run in self._runs:
            runs.append(run)
            while len(runs) > 1 and runs[-2].size <= runs[-1].size:
                first, size, pieces = runs.pop(-2)
                runs[-1] = _Run(first, size + runs[-1].size, pieces + runs[-1].pieces)
        self._runs = [run if len(run.pieces) == 1 else self._joined(run) for run in runs]
        self._fresh = 0

    def _joined(self, run: _Run) -> _Run:
        rows = [piece.metadata.row(at) for piece in run.pieces for at in range(piece.size)]
        return run._replace(pieces=[_Piece(_arrays_of(rows, self.types), run.size)])

    def _with_all_columns(self, metadata: Metadata, count: int) -> Metadata:
        missing = {name: kind for name, kind in self.types.items() if name not in metadata}
        return _Widened(metadata, missing, count) if missing else metadata


class _Widened(Metadata):
    """Metadata with columns that it lacks, without values."""

    def __init__(self, known: Metadata, missing: Mapping[str, str], count: int) -> None:
        super().__init__({}, count)
        self._known, self._missing = known, _metadata_of(_arrays_of([{}] * count, missing), count)
        self.types = {**known.types, **missing}

    def __getitem__(self, name: str) -> MetadataColumn:
        return self._known[name] if name in self._known else self._missing[name]


def _arrays_of(rows: list[dict[str, Any]], types: Mapping[str, str]) -> Arrays:
    return metadata_arrays(rows, types, lambda row: f"passages[{row}]")


def _metadata_of(arrays: Arrays, size: int) -> Metadata:
    return Metadata({name: Section(_label(name), array) for name, array in arrays.items()}, size)


def _label(name: str) -> str:
    return f"array {name!r} of a batch"
