"""Taking rows out of what an index has and what was added, in a new order, in long runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Strings = tuple[NDArray[np.int64], NDArray[np.uint8]]


def take_rows(base: NDArray[Any], added: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of the base and of the added arrays, which count on from it."""
    more = np.concatenate([base[:0], *added])
    parts = [source[first:last] for source, first, last in _runs(base, more, order, len(base))]
    return np.concatenate([base[:0], *parts])


def take_strings(name: str, base: Strings, added: Sequence[Strings], order: NDArray[np.int64]) -> dict[str, Any]:
    """Return the sections ``name.offsets`` and ``name.bytes`` of strings in a new order."""
    more_lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(offsets) for offsets, _ in added)])
    more = (_offsets(more_lengths), np.concatenate([np.zeros(0, np.uint8), *(data for _, data in added)]))
    lengths = np.concatenate([np.diff(base[0]), more_lengths])
    rows = len(base[0]) - 1
    parts = [
        data[int(offsets[first]) : int(offsets[last])]
        for (offsets, data), first, last in _runs(base, more, order, rows)
    ]
    return {
        f"{name}.offsets": _offsets(lengths[order]),
        f"{name}.bytes": np.concatenate([np.zeros(0, np.uint8), *parts]),
    }


def _runs(base: Any, more: Any, order: NDArray[np.int64], rows: int) -> list[tuple[Any, int, int]]:
    """Return (source, first, last) of rows that follow each other in one of the two sources."""
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
