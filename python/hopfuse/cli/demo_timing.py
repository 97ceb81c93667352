"""How long a batch takes, from texts to evidence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from ..recipes import PhaseGraph
from .names import NameFinder

REPEATS = {1: 20, 8: 10, 32: 7, 128: 5, 256: 3}


@dataclass(frozen=True)
class Timing:
    """Seconds for a batch of ``size`` questions: median, and the spread of the middle half."""

    size: int
    repeats: int
    median: float
    low: float
    high: float


def measure(recipe: PhaseGraph, names: NameFinder, texts: Sequence[str]) -> list[Timing]:
    """Time batches of every size, each batch with other questions, after one that is not counted."""
    timings = []
    for size, repeats in REPEATS.items():
        seconds = [_seconds(recipe, names, _batch(texts, size, turn)) for turn in range(repeats + 1)][1:]
        low, median, high = np.percentile(seconds, [25, 50, 75]).tolist()
        timings.append(Timing(size, repeats, median, low, high))
    return timings


def latency_table(timings: Sequence[Timing]) -> Table:
    """A row per batch size."""
    table = Table(
        title="Latency: from texts to the ten best passages",
        caption="Embedding, name matching and search; the median of some batches.",
        title_justify="left",
        caption_justify="left",
    )
    for column in ("batch", "batches", "median ms", "middle half ms", "ms/question", "questions/s"):
        table.add_column(column, justify="right")
    for t in timings:
        spread = f"{1e3 * t.low:.1f} .. {1e3 * t.high:.1f}"
        each, rate = f"{1e3 * t.median / t.size:.2f}", f"{t.size / t.median:,.0f}"
        table.add_row(str(t.size), str(t.repeats), f"{1e3 * t.median:.1f}", spread, each, rate)
    return table


def _batch(texts: Sequence[str], size: int, turn: int) -> list[str]:
    """Questions spread over all of them; the next turn's are others."""
    step = max(1, len(texts) // size)
    return [texts[(i * step + turn) % len(texts)] for i in range(size)]


def _seconds(recipe: PhaseGraph, names: NameFinder, texts: list[str]) -> float:
    start = time.perf_counter()
    recipe.search(texts, entities=names.find(texts), k=10)
    return time.perf_counter() - start
