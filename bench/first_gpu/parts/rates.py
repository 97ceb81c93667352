"""What the GPU does at most, by small kernels: copies, random gathers, latencies, launches and grid barriers.

They are the constants of bench/gpu_cards.py, of which this is the measurement.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ...clocks import Clocks
from ..card import require_card
from ..journal import FailedError, Journal
from ..launches import COOPERATIVE, L2_BYTES, THREADS, Array, Module
from ..sizes import Sizes

SOURCE = Path(__file__).parents[1] / "probes.cu"
ROW_BYTES = (16, 32, 64, 128)
#: Blocks for each multiprocessor of a copy and a gather, rows that a thread gathers, links of a line of 128 bytes.
BLOCKS, GATHERED, LINK = 8, 64, 128


class Work(NamedTuple):
    """Bytes of a copy and of the table in memory, links, barriers, launches in a row, and repetitions."""

    copied: int
    table: int
    links: int
    barriers: int
    launches: int
    times: int


FULL, QUICK = Work(1 << 29, 1 << 28, 20_000, 1_000, 2_000, 20), Work(1 << 16, 1 << 16, 40, 3, 5, 2)


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note each rate at once, with the clocks meanwhile."""
    work, module = QUICK if sizes.is_quick else FULL, Module(require_card(), SOURCE)
    journal.note(multiprocessors=module.multiprocessors, l2_bytes=module.attribute(L2_BYTES))
    with Clocks() as clocks:
        journal.note(launch=launches(module, work))
        journal.note(copy=copies(module, work))
        half = max(1 << 14, module.attribute(L2_BYTES) // 4)
        for name, table in (("L2", min(half, work.table)), ("memory", work.table)):
            journal.note(**{f"gathers from {name}": [gathers(module, work, table, row) for row in ROW_BYTES]})
            journal.note(**{f"latency of {name}": latency(module, work, table)})
        if module.attribute(COOPERATIVE):
            journal.note(barrier=barriers(module, work))
    journal.note(clocks=clocks.summary())
    of = journal.details
    loads = [1e9 * of[f"latency of {name}"]["seconds"] for name in ("L2", "memory")]
    copied, launched = of["copy"]["gigabytes_per_second"], 1e6 * of["launch"]["seconds_in_a_row"]
    return f"copies {copied:,.0f} GB/s; launches {launched:.1f} µs; loads {loads[0]:,.0f} and {loads[1]:,.0f} ns"


def times_of(seconds: list[float]) -> dict[str, float]:
    return {"least": min(seconds), "median": median(seconds)}


def rate(count: int, seconds: float) -> float:
    """Return gigabytes a second; the emulator's clock may stand still."""
    return count / max(seconds, 1e-9) / 1e9


def check(found: Array, expected: Array, what: str) -> None:
    if found.tobytes() != expected.tobytes():
        raise FailedError(f"{what} gave other numbers than it read")


def launches(module: Module, work: Work) -> dict[str, Any]:
    """Return the times of a kernel that does nothing: by events alone, and of many in a row by the host's clock."""
    launch = module.launcher("probe_nothing", 1, [ctypes.c_uint64(0)])
    alone = module.seconds(launch, work.times)
    return {**times_of(alone), "seconds_in_a_row": module.seconds_in_a_row(launch, work.launches)}


def copies(module: Module, work: Work) -> dict[str, Any]:
    """Return the rate of a copy: bytes read and written."""
    given = np.arange(work.copied // 4, dtype=np.float32)
    source, target = module.array(given), module.array(np.zeros_like(given))
    launch = module.launcher(
        "probe_copy", BLOCKS * module.multiprocessors, [source, target, ctypes.c_int64(given.size // 4)]
    )
    taken = times_of(module.seconds(launch, work.times))
    check(module.read(target, given), given, "a copy")
    module.free()
    return {"bytes": 2 * given.nbytes, **taken, "gigabytes_per_second": rate(2 * given.nbytes, taken["least"])}


def gathers(module: Module, work: Work, table_bytes: int, row_bytes: int) -> dict[str, Any]:
    """Return the rate of random rows of a table."""
    rng, blocks = np.random.default_rng(row_bytes), BLOCKS * module.multiprocessors
    count, together = table_bytes // row_bytes, row_bytes // 16
    gathered = 8 if work is QUICK else GATHERED
    table = rng.integers(0, 8, (count, row_bytes // 4), np.int8).astype(np.float32)
    rows = rng.integers(0, count, (blocks * THREADS // together, gathered), dtype=np.int32)
    out = np.zeros(blocks * THREADS, np.float32)
    places = [module.array(table), module.array(rows), ctypes.c_int(gathered), module.array(out)]
    taken = times_of(module.seconds(module.launcher(f"probe_gather_{row_bytes}", blocks, places), work.times))
    of_row = table.reshape(count, together, 4).sum(axis=2)
    expected = np.concatenate([of_row[part].sum(axis=1) for part in np.array_split(rows, 64)])
    check(module.read(places[3], out), expected.astype(np.float32).ravel(), f"a gather of {row_bytes} bytes")
    module.free()
    moved = rows.size * row_bytes
    return {"row_bytes": row_bytes, "bytes": moved, **taken, "gigabytes_per_second": rate(moved, taken["least"])}


def latency(module: Module, work: Work, table_bytes: int) -> dict[str, Any]:
    """Return the time of a load that waits for the one before.

    Each run goes on where the last one ended. So no line of the table in memory is read twice, and none is in L2, which
    is filled with other bytes before. The lines of the table in L2 come round again.
    """
    count = table_bytes // LINK
    order = np.random.default_rng(1).permutation(count)
    table = np.zeros((count, LINK // 4), np.int32)
    table[order, 0] = np.roll(order, -1)
    reached, steps = np.zeros(1, np.int32), min(work.links, count)
    places = [module.array(table), ctypes.c_int(steps), module.array(reached)]
    module.array(np.zeros(2 * module.attribute(L2_BYTES), np.int8))
    taken = times_of(module.seconds(module.launcher("probe_chase", 1, places), work.times))
    followed = int(np.flatnonzero(order == 0)[0]) + chased(work, steps)
    check(module.read(places[2], reached), np.array([order[followed % count]], np.int32), "a chain of loads")
    module.free()
    lines = min(chased(work, steps), count)
    return {"table_bytes": table_bytes, "loads": steps, "lines": lines, "seconds": taken["least"] / steps}


def chased(work: Work, steps: int) -> int:
    """Return the links that all runs follow, with the one that is not timed."""
    return steps * (work.times + 1)


def barriers(module: Module, work: Work) -> dict[str, Any]:
    """Return the time of a grid barrier of as many blocks as run at once, at most as many as a walk has."""
    blocks = min(module.resident_blocks("probe_barrier"), 4 * module.multiprocessors)
    arrived, came = np.zeros(1, np.uint32), np.zeros(1, np.int32)
    places = [module.array(arrived), ctypes.c_int(work.barriers), module.array(came)]
    taken = times_of(module.seconds(module.launcher("probe_barrier", blocks, places, True), work.times))
    passed = blocks * work.barriers * (work.times + 1)
    check(module.read(places[2], came), np.array([passed], np.int32), "a grid barrier")
    module.free()
    return {"blocks": blocks, "seconds": taken["least"] / work.barriers, "median": taken["median"] / work.barriers}
