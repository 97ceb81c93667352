"""Orders in which a graph's rows and entries are stored for few queries: kernels/include/hopfuse/ppr.h, PprSlices."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph
from .graph_arrays import Arrays

SEGMENT, SLICE = _native.PPR_SEGMENT, _native.PPR_SLICE


class Layout(NamedTuple):
    """An order in which rows are stored: the longest first.

    So rows of one length stand side by side, and the nodes that most entries read share lines of cache.
    """

    place: NDArray[np.int32]
    """(N,) where each internal node's row is stored."""
    internal: NDArray[np.int32]
    """(N,) the internal node of each stored row."""

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        internal = np.argsort(-np.diff(graph.indptr), kind="stable").astype(np.int32)
        place = np.empty_like(internal)
        place[internal] = np.arange(internal.size, dtype=np.int32)
        return cls(place, internal)

    def nodes(self, tables: Arrays) -> Arrays:
        """Return tables by internal node as tables by stored row."""
        return {
            name: None if table is None else np.ascontiguousarray(table[self.internal])
            for name, table in tables.items()
        }

    def rows(self, arrays: Arrays) -> Arrays:
        """Put rows (indptr, indices, then what each entry has) in this order; the entries of a row keep theirs."""
        (indptr_name, indptr), (indices_name, indices), *more = arrays.items()
        assert indptr is not None
        assert indices is not None
        length = np.diff(indptr)[self.internal]
        stored = np.zeros_like(indptr)
        np.cumsum(length, out=stored[1:])
        entry = np.arange(indices.size) + np.repeat(indptr[self.internal] - stored[:-1], length)
        return {
            indptr_name: stored,
            indices_name: self.place[indices[entry]],
            **{name: None if array is None else array[entry] for name, array in more},
        }


class Slices(NamedTuple):
    """Where the entries of rows by length stand in slices."""

    long_rows: int
    indptr: NDArray[np.int64]
    segment: NDArray[np.int32]
    row_segments: NDArray[np.int32]
    entry: NDArray[np.int64]
    """(nnz,) the stored entry that stands at each place."""

    @classmethod
    def of(cls, indptr: NDArray[np.int64]) -> Slices:
        """Return the slices of rows that are stored longest first."""
        length = np.diff(indptr)
        long_rows = min(length.size, _whole(int(np.count_nonzero(length > SEGMENT))))
        row_segments, first, size = _segments(indptr[: long_rows + 1])
        order = np.argsort(-size, kind="stable")
        segment, segment_begin, segment_size = (
            _filled(array[order], fill) for array, fill in ((np.arange(size.size), size.size), (first, 0), (size, 0))
        )
        begin = np.concatenate([segment_begin, _filled(indptr[long_rows:-1], 0)])
        unit_size = np.concatenate([segment_size, _filled(length[long_rows:], 0)])
        units = np.zeros(begin.size + 1, np.int64)
        np.cumsum(unit_size, out=units[1:])
        entry = np.arange(int(units[-1])) + np.repeat(begin - units[:-1], unit_size)
        _interleave(entry, units)
        return cls(long_rows, units, segment.astype(np.int32), row_segments.astype(np.int32), entry)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the tables that the kernels read, by their names there."""
        return {"indptr": self.indptr, "segment": self.segment, "row_segments": self.row_segments}


def _whole(units: int) -> int:
    """Return so many units and those that fill the last slice."""
    return -(-units // SLICE) * SLICE


def _filled(array: NDArray[Any], fill: int) -> NDArray[Any]:
    return np.pad(array, (0, _whole(array.size) - array.size), constant_values=fill)


def _segments(indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return each row's first segment, and each segment's first entry and size."""
    count = -(-np.diff(indptr) // SEGMENT)
    row_segments = np.zeros(indptr.size, np.int64)
    np.cumsum(count, out=row_segments[1:])
    row = np.repeat(np.arange(count.size), count)
    first = indptr[row] + SEGMENT * (np.arange(row.size) - row_segments[row])
    return row_segments, first, np.minimum(SEGMENT, indptr[row + 1] - first)


def _interleave(entry: NDArray[np.int64], units: NDArray[np.int64]) -> None:
    """Bring entries that stand unit by unit into the order of slices, in place."""
    begin = units[::SLICE]
    size = np.diff(units).reshape(-1, SLICE)
    longest, shortest = size[:, 0], size[:, -1]
    starts = np.ones(longest.size, bool)  # slices of one length are a run; others are by themselves
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
