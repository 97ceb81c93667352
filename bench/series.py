"""What the plots show, from recorded rows: lines and points, without a drawing library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]
Lines = dict[str, list[tuple[float, float]]]
#: Queries of a call in the plot over graph sizes.
BATCH = 64


class Point(NamedTuple):
    """A measured pass: operations per byte, and operations per second."""

    label: str
    intensity: float
    rate: float


def timed(rows: Sequence[Row]) -> list[Row]:
    """The rows that have hopfuse's time on the CPU."""
    return [row for row in rows if row["status"] == "ok" and "hopfuse" in row and not row.get("device")]


def latency(rows: Sequence[Row]) -> Lines:
    """(queries of a call, seconds) of hopfuse and of each peer in ``ppr-batches``."""
    chosen = [row for row in timed(rows) if row["case"] == "ppr-batches"]
    return _lines((name, row["sizes"]["batch"], seconds) for row in chosen for name, seconds in _sides(row))


def throughput(rows: Sequence[Row]) -> Lines:
    """(stored entries, queries a second) of hopfuse and of each peer on generated graphs, in calls of 64 queries."""
    chosen = [row for row in timed(rows) if row["data"] == "generated" and row["sizes"]["batch"] == BATCH]
    return _lines(
        (name, row["sizes"]["stored_entries"], BATCH / seconds) for row in chosen for name, seconds in _sides(row)
    )


def passes(rows: Sequence[Row]) -> list[Point]:
    """Every measured pass, the last one of a case and batch: two operations for a gathered value."""
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
    """Points by their line, in order; the last one where there are several at a place."""
    found: dict[str, dict[float, float]] = {}
    for name, x, y in points:
        found.setdefault(name, {})[x] = y
    return {name: sorted(line.items()) for name, line in found.items()}
