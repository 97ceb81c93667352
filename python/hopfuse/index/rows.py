"""Select rows of a generation and of later batches in a new order, copying in long runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Memory grows by 1 / GROWTH of its size, so that rows are seldom copied.
GROWTH = 8
Strings = tuple[NDArray[np.int64], NDArray[np.uint8]]


def take_rows(base: NDArray[Any], added: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of the base followed by the added arrays, in an order."""
    more = np.concatenate([base[:0], *added])
    parts = [source[first:last] for source, first, last in _runs(base, more, order, len(base))]
    return np.concatenate([base[:0], *parts])


class GrownRows:
    """Rows of a generation and of later batches, in memory that grows in place.

    Snapshots share the memory: each is a prefix of it, and the next one copies only its new rows. Thread-safe.
    """

    def __init__(self) -> None:
        self._rows: NDArray[Any] | None = None
        self._held = 0
        self._lock = threading.Lock()

    def joined(self, base: NDArray[Any], added: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the base and the added rows as one read-only array.

        ``base`` is the same at every call, and the ``added`` of one call is a prefix of that of another.
        """
        count = len(base) + sum(map(len, added))
        if not len(added):
            return base
        with self._lock:
            if self._rows is None or len(self._rows) < count:
                grown = np.empty((count + count // GROWTH + 1, *base.shape[1:]), base.dtype)
                held = base if self._rows is None else self._rows[: self._held]
                grown[: len(held)] = held
                self._rows, self._held = grown, len(held)
            first = len(base)
            for part in added:
                known = min(max(self._held - first, 0), len(part))
                self._rows[first + known : first + len(part)] = part[known:]
                first += len(part)
            self._held = max(self._held, count)
            rows = self._rows[:count]
        rows.flags.writeable = False
        return rows

    def take(self, base: NDArray[Any], added: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows as :func:`take_rows` does, without a copy if the order is that of all rows."""
        if is_whole(order, len(base) + sum(map(len, added))):
            return self.joined(base, added)
        return take_rows(base, added, order)


def is_whole(order: NDArray[np.int64], count: int) -> bool:
    """Return whether an order is 0 .. count - 1."""
    return order.size == count and bool((order == np.arange(count)).all())


def take_strings(
    name: str, base: Strings, added: Sequence[Strings], order: NDArray[np.int64], grown: GrownRows | None = None
) -> dict[str, Any]:
    """Return the sections ``name.offsets`` and ``name.bytes`` of strings in a new order."""
    lengths = np.concatenate([np.diff(base[0]), *(np.diff(offsets) for offsets, _ in added)])
    if grown is not None and is_whole(order, lengths.size):
        return {
            f"{name}.offsets": _offsets(lengths),
            f"{name}.bytes": grown.joined(base[1], [data for _, data in added]),
        }
    rows = len(base[0]) - 1
    more = (_offsets(lengths[rows:]), np.concatenate([np.zeros(0, np.uint8), *(data for _, data in added)]))
    parts = [
        data[int(offsets[first]) : int(offsets[last])]
        for (offsets, data), first, last in _runs(base, more, order, rows)
    ]
    return {
        f"{name}.offsets": _offsets(lengths[order]),
        f"{name}.bytes": np.concatenate([np.zeros(0, np.uint8), *parts]),
    }


def _runs(base: Any, more: Any, order: NDArray[np.int64], rows: int) -> list[tuple[Any, int, int]]:
    """Return the runs (source, first, end) of consecutive rows in one of the two sources."""
    if not order.size:
        return []
    breaks = np.flatnonzero((order[1:] != order[:-1] + 1) | (order[1:] == rows)) + 1
    starts, ends = np.append(0, breaks), np.append(breaks, order.size)
    return [
        (base, first, last + 1) if first < rows else (more, first - rows, last - rows + 1)
        for first, last in zip(order[starts].tolist(), order[ends - 1].tolist(), strict=True)
    ]


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
