"""Recorded searches of the sizes on docs/gpu.md: equal to the CPU's, timed as a whole and by kernel, with clocks.

Kernels are timed as they are replayed, by torch's profiler; the self-test times each of them by events.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...clocks import Clocks
from ...measure import REST
from ...stats import summary
from ..card import require_card
from ..journal import FailedError, Journal
from ..search import Inputs, Search, digest
from ..sizes import Sizes
from .recordings import replay_seconds

BATCHES = (1, 32)
#: The sizes "MuSiQue" and "million" of bench/gpu_kernels.py, whose edges are stored both ways.
INPUTS = {
    "small": Inputs(),
    "musique": Inputs(72_000, 525_000, 11_656, 4096),
    "million": Inputs(1_000_000, 5_000_000, 1_000_000, 1024, "float16"),
}
PROFILED = 5
#: Replays one right after another, and those that each begin after a rest, in which a GPU lowers its clocks.
IN_A_ROW, RESTED = 200, 20


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note the milliseconds of every search, and of its kernels."""
    require_card()
    rows = list[dict[str, Any]]()
    for name in ["small"] if sizes.is_quick else INPUTS:
        search = Search(INPUTS[name])
        for batch in BATCHES[:1] if sizes.is_quick else BATCHES:
            rows.append({"size": name, "batch": batch, **measured(search, batch, sizes.is_quick)})
            journal.note(rows=rows)
        search.release()
    wrong = [f"{row['size']} at {row['batch']}" for row in rows if not row["equal"]]
    if wrong:
        raise FailedError(f"answers differ from the CPU's: {', '.join(wrong)}")
    return "; ".join(f"{row['size']}, {row['batch']}: {row['milliseconds']:.3f} ms" for row in rows)


def measured(search: Search, batch: int, is_quick: bool) -> dict[str, Any]:
    """Return a search's times: with the copies of questions and answers, and of its kernels."""
    questions, recording = search.questions(batch), search.captured()
    begin = time.perf_counter()
    found = recording(*questions)
    recorded = time.perf_counter() - begin
    hashes = {"cuda": digest(found), "cpu": digest(search.captured("cpu")(*questions))}
    count = 3 if is_quick else IN_A_ROW
    with Clocks() as in_a_row:
        replays = summary(replay_seconds(recording, questions, count))
    with Clocks() as rested:
        pauses = summary([paused(recording, questions) for _ in range(min(count, RESTED))])
    return {
        "equal": hashes["cuda"] == hashes["cpu"],
        "hashes": hashes,
        "record_seconds": recorded,
        "milliseconds": 1e3 * replays["median"],
        "in_a_row": {**replays, "clocks": in_a_row.summary()},
        "rested": {**pauses, "clocks": rested.summary()},
        "kernels": kernels(recording, questions),
    }


def paused(recording: Any, questions: list[Any]) -> float:
    """Return the seconds of a search after a rest."""
    time.sleep(REST)
    return replay_seconds(recording, questions, 1)[0]


def kernels(recording: Any, questions: list[Any]) -> dict[str, list[float]]:
    """Return each kernel's calls and microseconds in one search, most first; empty without torch's profiler."""
    if find_spec("torch") is None:
        return {}
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(PROFILED):
            recording(*questions)
    taken = {
        event.key: [event.count / PROFILED, event.self_device_time_total / PROFILED] for event in found.key_averages()
    }
    return dict(sorted(taken.items(), key=lambda item: -item[1][1]))
