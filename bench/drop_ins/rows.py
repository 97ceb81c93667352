"""A row of the table: two implementations of the same calls, compared and then timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Row(NamedTuple):
    """Median CPU milliseconds per call of each implementation, and the largest difference of a score."""

    case: str
    own_ms: float
    ours_ms: float
    difference: float
    turns: int
    sizes: Mapping[str, int]

    def __str__(self) -> str:
        ratio = self.own_ms / self.ours_ms
        return f"| {self.case} | {self.own_ms:.1f} ms | {self.ours_ms:.2f} ms | {ratio:.1f}× | {self.difference:.0e} |"


def compared(
    case: str,
    own: Callable[[], Any],
    ours: Callable[[], Any],
    difference: Callable[[Any, Any], float],
    *,
    most: float,
    turns: int,
    sizes: Mapping[str, int] | None = None,
) -> Row:
    """Return a row; exit before timing if the difference is above ``most``."""
    gap = difference(own(), ours())
    if not gap <= most:
        raise SystemExit(f"{case}: scores differ by {gap}; {most} is allowed")
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for call, taken in zip((own, ours), times, strict=True):
            begin = time.process_time()
            call()
            taken.append(1e3 * (time.process_time() - begin))
    return Row(case, statistics.median(times[0]), statistics.median(times[1]), gap, turns, sizes or {})
