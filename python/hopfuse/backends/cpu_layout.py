"""Storage orders of rows and entries; see PprGraph, PprSlices and PprTiles in kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._arrays.rows import indptr_of_counts
from ..types import Graph
from .graph_arrays import Arrays

SEGMENT, SLICE, ROWS_OF_TILE = _native.PPR_SEGMENT, _native.PPR_SLICE, _native.PPR_TILE
STRIP, BLOCK = 2**16, 2**16
"""Nodes per strip and the most units per block: both are 16-bit numbers, and a lane's state of either fits L2."""


class Layout(NamedTuple):
    """An order of rows by length, longest first, so that rows of equal length are adjacent.

    If all rows are sorted together, the nodes read most often also share cache lines.
    """

    place: NDArray[np.int32]
    """(N,) the stored row of each internal node."""
    internal: NDArray[np.int32]
    """(N,) the internal node of each stored row."""

    @classmethod
    def of(cls, graph: Graph, window: int | None = None) -> Layout:
        """Sort all rows by length, or those of each ``window`` separately."""
        length = np.diff(graph.indptr)
        if window is None:
            internal = np.argsort(-length, kind="stable").astype(np.int32)
        else:
            internal = np.lexsort((-length, np.arange(length.size) // window)).astype(np.int32)
        place = np.empty_like(internal)
        place[internal] = np.arange(internal.size, dtype=np.int32)
        return cls(place, internal)

    def nodes(self, tables: Arrays) -> Arrays:
        """Reorder tables by internal node to tables by stored row."""
        return {
            name: None if table is None else np.ascontiguousarray(table[self.internal])
            for name, table in tables.items()
        }

    def rows(self, arrays: Arrays) -> Arrays:
        """Reorder rows (indptr, indices, then arrays by entry); the entries of a row keep their order."""
        (indptr_name, indptr), (indices_name, indices), *more = arrays.items()
        assert indptr is not None
        assert indices is not None
        length = np.diff(indptr)[self.internal]
        stored = indptr_of_counts(length)
        entry = np.arange(indices.size) + np.repeat(indptr[self.internal] - stored[:-1], length)
        return {
            indptr_name: stored,
            indices_name: self.place[indices[entry]],
            **{name: None if array is None else array[entry] for name, array in more},
        }


class Slices(NamedTuple):
    """Rows sorted by length, in slices of eight rows or segments whose entries are interleaved."""

    long_rows: int
    indptr: NDArray[np.int64]
    segment: NDArray[np.int32]
    row_segments: NDArray[np.int32]
    entry: NDArray[np.int64]
    """(nnz,) the stored entry at each position."""

    @classmethod
    def of(cls, indptr: NDArray[np.int64]) -> Slices:
        """Return the slices of rows that are sorted longest first."""
        length = np.diff(indptr)
        long_rows = min(length.size, _whole(int(np.count_nonzero(length > SEGMENT))))
        row_segments, first, size = _segments(indptr[: long_rows + 1])
        order = np.argsort(-size, kind="stable")
        segment, segment_begin, segment_size = (
            _filled(array[order], fill) for array, fill in ((np.arange(size.size), size.size), (first, 0), (size, 0))
        )
        begin = np.concatenate([segment_begin, _filled(indptr[long_rows:-1], 0)])
        unit_size = np.concatenate([segment_size, _filled(length[long_rows:], 0)])
        units = indptr_of_counts(unit_size)
        entry = np.arange(int(units[-1])) + np.repeat(begin - units[:-1], unit_size)
        _interleave(entry, units)
        return cls(long_rows, units, segment.astype(np.int32), row_segments.astype(np.int32), entry)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the tables that the kernels read, by name."""
        return {"indptr": self.indptr, "segment": self.segment, "row_segments": self.row_segments}


def _whole(units: int) -> int:
    """Round a number of units up to whole slices."""
    return -(-units // SLICE) * SLICE


def _filled(array: NDArray[Any], fill: int) -> NDArray[Any]:
    return np.pad(array, (0, _whole(array.size) - array.size), constant_values=fill)


def _segments(indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return each row's first segment, and each segment's first entry and size."""
    count = -(-np.diff(indptr) // SEGMENT)
    row_segments = indptr_of_counts(count)
    row = np.repeat(np.arange(count.size), count)
    first = indptr[row] + SEGMENT * (np.arange(row.size) - row_segments[row])
    return row_segments, first, np.minimum(SEGMENT, indptr[row + 1] - first)


def _interleave(entry: NDArray[np.int64], units: NDArray[np.int64]) -> None:
    """Reorder entries from unit by unit to slice by slice, in place."""
    begin = units[::SLICE]
    size = np.diff(units).reshape(-1, SLICE)
    longest, shortest = size[:, 0], size[:, -1]
    starts = np.ones(longest.size, bool)  # consecutive slices whose units all have one length form a run
    starts[1:] = (longest[1:] != shortest[1:]) | (longest[1:] != shortest[:-1]) | (longest[:-1] != shortest[:-1])
    for run, end in itertools.pairwise(np.append(np.flatnonzero(starts), longest.size)):
        here = entry[begin[run] : begin[end]]
        common = int(shortest[run])
        if common == longest[run]:
            here[:] = here.reshape(-1, SLICE, common).swapaxes(1, 2).reshape(-1) if common else here
            continue
        parts = np.split(here, np.cumsum(size[run])[:-1])
        here[:] = np.concatenate(
            [np.stack([part[:common] for part in parts], axis=1).reshape(-1), *(part[common:] for part in parts)]
        )


class Tiles(NamedTuple):
    """The entries of a large graph in tiles; see PprTiles in kernels/include/hopfuse/ppr.h."""

    strip: int
    most_units: int
    block_row: NDArray[np.int64]
    begin: NDArray[np.int64]
    unit: NDArray[np.uint16]
    source: NDArray[np.uint16]
    more: Arrays
    """Weights, types and shares of the entries, in tile order."""

    @classmethod
    def of(cls, indptr: NDArray[np.int64], indices: NDArray[np.int32], more: Arrays) -> Tiles | None:
        """Return the tiles of rows in internal order, or None if 64 rows have more units than a block can hold."""
        units = _unit_ends(indptr)
        block_row = _block_rows(units)
        if block_row is None:
            return None
        strips = np.arange(0, indptr.size - 1, STRIP)
        unit, source = (np.empty(indices.size, np.uint16) for _ in range(2))
        laid = {name: None if array is None else np.empty_like(array) for name, array in more.items()}
        begin = []
        for row, end in itertools.pairwise(block_row.tolist()):
            here = slice(indptr[row], indptr[end])
            order = np.argsort(indices[here], kind="stable")
            by_source = indices[here][order]
            begin.append(here.start + np.searchsorted(by_source, strips))
            source[here] = by_source % STRIP
            unit[here] = _unit_of_entry(indptr[row : end + 1], units[row : end + 1])[order]
            for name, array in laid.items():
                if array is not None:
                    array[here] = more[name][here][order]  # type: ignore[index]
        begin.append(np.array([indices.size]))
        most = int(np.diff(units[block_row]).max())
        return cls(STRIP, most, block_row, np.concatenate(begin).astype(np.int64), unit, source, laid)


def _unit_ends(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of units before each row, and of all."""
    return indptr_of_counts(-(-np.diff(indptr) // SEGMENT))


def _block_rows(units: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the first row of each block and the end; each block takes as many groups of 64 rows as fit."""
    rows = np.append(np.arange(0, units.size - 1, ROWS_OF_TILE), units.size - 1)
    before = units[rows]
    blocks = [0]
    while blocks[-1] < rows.size - 1:
        fits = int(np.searchsorted(before, before[blocks[-1]] + BLOCK, side="right")) - 1
        if fits == blocks[-1]:
            return None
        blocks.append(fits)
    block_row: NDArray[np.int64] = rows[blocks]
    return block_row


def _unit_of_entry(indptr: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the unit, within its block, of each entry of a block's rows."""
    length = np.diff(indptr)
    at: NDArray[np.int64] = np.arange(indptr[-1] - indptr[0]) - np.repeat(indptr[:-1] - indptr[0], length)
    at //= SEGMENT
    at += np.repeat(units[:-1] - units[0], length)
    return at
