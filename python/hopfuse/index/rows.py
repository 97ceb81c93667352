"""Rows of a generation that grow by those of a log, and rows in a new order, copied in long runs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.mapped import with_room
from .sections import Section

#: Memory grows by 1 / GROWTH of its size, so that rows are seldom copied. Pages that are not written take none.
GROWTH = 8


class GrownRows:
    """Rows of a generation, and rows appended to them, in memory that grows in place.

    Snapshots share the memory: each has a prefix of it, and appending copies only the new rows. The pages of a mapped
    generation are shared too. Thread-safe.
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


def is_whole(order: NDArray[np.int64], count: int) -> bool:
    """Return whether an order is 0 .. count - 1."""
    return order.size == count and bool((order == np.arange(count)).all())


def take_rows(rows: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows in an order; if it is that of all rows, the array itself."""
    if is_whole(order, len(rows)):
        return rows
    return np.concatenate([rows[:0], *(rows[first:end] for first, end in _runs(order))])


def take_strings(
    name: str, offsets: NDArray[np.int64], data: NDArray[np.uint8], order: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the sections ``name.offsets`` and ``name.bytes`` of strings in an order."""
    if not is_whole(order, len(offsets) - 1):
        lengths = np.diff(offsets)[order]
        runs = [data[offsets[first] : offsets[end]] for first, end in _runs(order)]
        data = np.concatenate([data[:0], *runs])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    return {f"{name}.offsets": offsets, f"{name}.bytes": data}


def _runs(order: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the runs (first, end) of consecutive rows in an order."""
    if not order.size:
        return []
    breaks = np.flatnonzero(order[1:] != order[:-1] + 1) + 1
    starts, ends = np.append(0, breaks), np.append(breaks, order.size)
    return list(zip(order[starts].tolist(), (order[ends - 1] + 1).tolist(), strict=True))
