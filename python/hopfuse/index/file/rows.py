"""Rows of a generation that grow by those of a log, and rows in a new order, copied in long runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.mapped import with_room
from ..._arrays.rows import indptr_of_counts
from .format import BLOCK
from .sections import LazySection, MadeSection, Section

#: Memory grows by 1 / GROWTH of its size, so that rows are seldom copied. Pages that are not written take none.
GROWTH = 8


class GrownRows:
    """Rows of a generation, and rows appended to them, in memory that grows in place.

    Snapshots share the memory: each has a prefix of it, and appending copies only the new rows. The pages of a mapped
    generation are also shared. Thread-safe.
    """

    def __init__(self, base: Section) -> None:
        self.base = base.shape[0]
        self._section = base
        self._base: NDArray[Any] | None = None  # read with the first rows
        self._waiting: list[NDArray[Any]] = []
        self._lock = threading.Lock()

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows; earlier prefixes stay valid."""
        with self._lock:
            self._waiting.append(rows)

    def last(self) -> Any:
        """Return the last row."""
        with self._lock:
            return self._joined()[self._held - 1]

    def prefix(self, count: int) -> NDArray[Any]:
        """Return the first rows, read-only."""
        with self._lock:
            rows = self._joined()[:count]
        rows.flags.writeable = False
        return rows

    def _joined(self) -> NDArray[Any]:
        """Return memory that begins with all rows."""
        if self._base is None:
            self._base = self._rows = self._section.whole()
            self._held = self.base
        for rows in self._waiting:
            count = self._held + len(rows)
            if self._rows is self._base or count > len(self._rows):
                grown = with_room(self._base, count + count // GROWTH + 1)
                grown[self.base : self._held] = self._rows[self.base : self._held]
                self._rows = grown
            self._rows[self._held : count] = rows
            self._held = count
        self._waiting = []
        return self._rows


_known_rows = np.arange(1 << 10)


def all_rows(count: int) -> NDArray[np.int64]:
    """Return 0 .. count - 1, read-only; the memory is shared, and :func:`is_whole` knows it."""
    global _known_rows
    known = _known_rows
    if count > known.size:
        known = np.arange(2 * count)
        _known_rows = known
    rows = known[:count]
    rows.flags.writeable = False
    return rows


def is_whole(order: NDArray[np.int64], count: int) -> bool:
    """Return whether an order is 0 .. count - 1."""
    if order.size != count:
        return False
    if order.base is _known_rows and order.strides == _known_rows.strides and count and order[0] == 0:
        return True
    if count and (order[0] != 0 or order[-1] != count - 1):  # most other orders
        return False
    return bool((order == np.arange(count)).all())


def take_rows(rows: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows in an order; for the order of all rows, the array itself."""
    if is_whole(order, len(rows)):
        return rows
    if rows.ndim == 1:
        return rows[order]
    return np.concatenate([rows[:0], *(rows[first:end] for first, end in _runs(order))])


class TakenRows(MadeSection):
    """Rows of an array in an order, copied each time they are read, and not kept."""

    __slots__ = ("_order", "_rows")

    def __init__(self, label: str, rows: NDArray[Any], order: NDArray[np.int64]) -> None:
        super().__init__(label, (order.size, *rows.shape[1:]), rows.dtype, self._parts)
        self._rows, self._order = rows, order

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return some of the rows; the others are not read."""
        return self._rows[self._order[rows]]

    def _parts(self) -> Iterator[NDArray[Any]]:
        count = max(1, BLOCK // max(1, self._rows[:1].nbytes))
        for first in range(0, self._order.size, count):
            yield take_rows(self._rows, self._order[first : first + count])


class TakenOffsets(LazySection):
    """The offsets of strings in an order, made when they are first read; their number is known before."""

    __slots__ = ("_count",)

    def __init__(self, label: str, offsets: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        super().__init__(label, np.int64, lambda: indptr_of_counts(np.diff(offsets)[order]))
        self._count = order.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array; it is not made."""
        return (self._count + 1,)

    @property
    def nbytes(self) -> int:
        """Bytes of the array; it is not made."""
        return 8 * (self._count + 1)


class TakenBytes(MadeSection):
    """The bytes of strings in an order, copied each time they are read, and not kept.

    Parameters
    ----------
    offsets, data : ndarray of int64 (n + 1,) and of uint8
        The offsets and bytes of all strings.
    order : ndarray of int64, shape (m,)
    ends : TakenOffsets
        The offsets of the strings in the order.
    """

    __slots__ = ("_data", "_ends", "_offsets", "_order")

    def __init__(
        self,
        label: str,
        offsets: NDArray[np.int64],
        data: NDArray[np.uint8],
        order: NDArray[np.int64],
        ends: TakenOffsets,
    ) -> None:
        super().__init__(label, (), np.uint8, self._parts)
        self._offsets, self._data, self._order, self._ends = offsets, data, order, ends

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array, for which the offsets are made."""
        return (int(self._ends.whole()[-1]),)

    def part(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return bytes start .. stop-1; those of strings that are not among them are not read."""
        if start >= stop:
            return self._data[:0]
        ends = self._ends.whole()
        first = int(np.searchsorted(ends, start, "right")) - 1
        last = int(np.searchsorted(ends, stop))
        skipped = start - int(ends[first])
        return self._of(first, last)[skipped : skipped + stop - start]

    def strings(self, name: str, rows: NDArray[np.int64]) -> dict[str, Section]:
        """Return the sections ``name.offsets`` and ``name.bytes`` of some of the strings, in an order."""
        return take_strings(name, self._offsets, self._data, self._order[rows])

    def string(self, at: int) -> NDArray[np.uint8]:
        """Return the bytes of a string."""
        place = self._order[at]
        return self._data[self._offsets[place] : self._offsets[place + 1]]

    def _parts(self) -> Iterator[NDArray[np.uint8]]:
        bounds = np.searchsorted(self._ends.whole(), np.arange(0, self.shape[0], BLOCK))
        for first, last in pairwise(np.unique([*bounds.tolist(), self._order.size]).tolist()):
            yield self._of(first, last)

    def _of(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return the bytes of consecutive strings."""
        runs = _runs(self._order[first:last])
        return np.concatenate([self._data[self._offsets[begin] : self._offsets[end]] for begin, end in runs])


def take_strings(
    name: str, offsets: NDArray[np.int64], data: NDArray[np.uint8], order: NDArray[np.int64]
) -> dict[str, Section]:
    """Return the sections ``name.offsets`` and ``name.bytes`` of strings in an order; the bytes are not copied yet."""
    labels = f"{name}.offsets", f"{name}.bytes"
    if is_whole(order, len(offsets) - 1):
        return {labels[0]: Section(labels[0], offsets), labels[1]: Section(labels[1], data)}
    ends = TakenOffsets(labels[0], offsets, order)
    return {labels[0]: ends, labels[1]: TakenBytes(labels[1], offsets, data, order, ends)}


def _runs(order: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the runs (first, end) of consecutive rows in an order."""
    if not order.size:
        return []
    breaks = np.flatnonzero(order[1:] != order[:-1] + 1) + 1
    starts, ends = np.append(0, breaks), np.append(breaks, order.size)
    return list(zip(order[starts].tolist(), (order[ends - 1] + 1).tolist(), strict=True))
