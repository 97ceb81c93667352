"""How long a batch takes, from texts to evidence."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from .demo_asked import Contest
from .demo_ways import DEPTH

REPEATS = {1: 20, 8: 10, 32: 7, 128: 5, 256: 3}
#: Seconds that the batches of one size may take, about.
BUDGET = 5.0


@dataclass(frozen=True)
class Timing:
    """Seconds for a batch of ``size`` questions: median, and the spread of the middle half.

    ``embeds``: whether texts were encoded in that time.
    """

    size: int
    repeats: int
    median: float
    low: float
    high: float
    embeds: bool


def measure(contest: Contest) -> list[Timing]:
    """Time batches of every size, each batch with other questions, after one that is not counted.

    What that one takes says how many there is time for; a size for which the one before it foretells too long a batch,
    and all larger ones, are left out.
    """
    timings = list[Timing]()
    for size, repeats in REPEATS.items():
        if timings and timings[-1].low * size / timings[-1].size > BUDGET:
            break
        count = rounds(_timed(contest, _batch(len(contest.asked), size, 0))[0], repeats)
        timed = [_timed(contest, _batch(len(contest.asked), size, turn)) for turn in range(1, count + 1)]
        low, median, high = np.percentile([seconds for seconds, _ in timed], [25, 50, 75]).tolist()
        timings.append(Timing(size, count, median, low, high, any(embeds for _, embeds in timed)))
    return timings


def rounds(first: float, most: int) -> int:
    """How many batches there is time for, at least one, where the first takes so many seconds.

    Examples
    --------
    >>> [rounds(first, 20) for first in (0.001, 0.5, 60.0)]
    [20, 10, 1]
    """
    return most if first * most <= BUDGET else max(1, int(BUDGET / first))


def latency_table(timings: list[Timing], contest: Contest) -> Table:
    """A row per batch size; what was timed is said below."""
    made = {"Embedding": any(t.embeds for t in timings)}
    made["name matching"] = contest.chosen.reads_entities and contest.asked.mentions is None
    counted = [part for part, own in made.items() if own] + ["search"]
    said = " and ".join((", ".join(counted[:-1]), counted[-1])) if len(counted) > 1 else "Search alone"
    table = Table(
        title=f"Latency: to the {DEPTH} best",
        caption=f"{said[0].upper()}{said[1:]}; the median of some batches.{_left_out(timings)}",
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


def _left_out(timings: list[Timing]) -> str:
    sizes = list(REPEATS)[len(timings) :]
    return f"\nNot timed, for they would take too long: batches of {', '.join(map(str, sizes))}." if sizes else ""


def _batch(count: int, size: int, turn: int) -> list[int]:
    """Questions spread over all of them; the next turn's are others."""
    step = max(1, count // size)
    return [(i * step + turn) % count for i in range(size)]


def _timed(contest: Contest, rows: list[int]) -> tuple[float, bool]:
    """Seconds, and whether they are of embedding too: a recipe may embed what the data has no vectors of."""
    contest.encoder.start()
    start = time.perf_counter()
    contest.answer(rows, DEPTH)
    return time.perf_counter() - start, contest.encoder.used
