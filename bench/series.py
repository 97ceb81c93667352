"""The data of the plots, from recorded rows: lines and points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .machine import is_best_cpu

Row = dict[str, Any]
Lines = dict[str, list[tuple[float, float]]]
#: Queries per call in the plot by size of graph.
BATCH = 64


class Point(NamedTuple):
    """A measured pass: operations per byte, and operations per second."""

    label: str
    intensity: float
    rate: float


def timed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that have hopfuse's time on the CPU, on the best instruction set."""
    return [row for row in rows if row["status"] == "ok" and "hopfuse" in row and is_best_cpu(row)]


def latency(rows: Sequence[Row]) -> Lines:
    """Return (queries per call, seconds) of hopfuse and of each peer in ``ppr-batches``."""
    return by_batch(rows, "ppr-batches")


def by_batch(rows: Sequence[Row], case: str) -> Lines:
    """Return (queries per call, seconds) of hopfuse and of each peer in a case."""
    chosen = [row for row in timed(rows) if row["case"] == case]
    return _lines((name, row["sizes"]["batch"], seconds) for row in chosen for name, seconds in _sides(row))


def throughput(rows: Sequence[Row]) -> Lines:
    """Return (stored entries, queries per second) of hopfuse and each peer on generated graphs, 64 queries per call."""
    chosen = [row for row in timed(rows) if row["data"] == "generated" and row["sizes"]["batch"] == BATCH]
    return _lines(
        (name, row["sizes"]["stored_entries"], BATCH / seconds) for row in chosen for name, seconds in _sides(row)
    )


def passes(rows: Sequence[Row]) -> list[Point]:
    """Return the last measured pass of each case and batch, counting two operations per gathered value."""
    found = {}
    for row in timed(rows):
        taken = row.get("pass")
        if taken and taken["seconds"] > 0.0:
            moved = taken["moved"]
            operations = 2 * moved["gathered"] / 4
            label = f"{row['case'].removeprefix('ppr-')}, B = {row['sizes']['batch']}"
            intensity = operations / (moved["gathered"] + moved["streamed"])
            found[label] = Point(label, intensity, operations / taken["seconds"])
    return list(found.values())


def _sides(row: Row) -> list[tuple[str, float]]:
    sides = [("hopfuse", row["hopfuse"]), (row["peer"], row["peer_time"])]
    return [(name, times["median"]) for name, times in sides if times is not None]


def _lines(points: Iterable[tuple[str, float, float]]) -> Lines:
    """Return the points of each line in order, the last one if several have the same x."""
    found: dict[str, dict[float, float]] = {}
    for name, x, y in points:
        found.setdefault(name, {})[x] = y
    return {name: sorted(line.items()) for name, line in found.items()}
