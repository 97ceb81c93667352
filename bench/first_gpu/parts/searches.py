"""Recorded searches of the sizes on docs/gpu.md: equal to the CPU's, timed as a whole, and by kernel where torch is."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from ..card import require_card
from ..journal import FailedError, Journal
from ..search import Inputs, Search, same
from ..sizes import Sizes
from .recordings import replay_seconds

BATCHES = (1, 32)
#: The sizes "MuSiQue" and "million" of bench/roofline.py, whose edges are stored both ways.
INPUTS = {
    "small": Inputs(),
    "musique": Inputs(72_000, 525_000, 11_656, 4096),
    "million": Inputs(1_000_000, 5_000_000, 1_000_000, 1024, "float16"),
}
PROFILED = 5


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note the milliseconds of every search, and of its kernels."""
    require_card()
    rows = list[dict[str, Any]]()
    for name in ["small"] if sizes.is_quick else INPUTS:
        search = Search(INPUTS[name])
        for batch in BATCHES[:1] if sizes.is_quick else BATCHES:
            rows.append({"size": name, "batch": batch, **measured(search, batch)})
            journal.note(rows=rows)
        search.release()
    wrong = [f"{row['size']} at {row['batch']}" for row in rows if not row["equal"]]
    if wrong:
        raise FailedError(f"answers differ from the CPU's: {', '.join(wrong)}")
    return "; ".join(f"{row['size']}, {row['batch']}: {row['milliseconds']:.3f} ms" for row in rows)


def measured(search: Search, batch: int) -> dict[str, Any]:
    """Return a search's times: with the copies of questions and answers, and of its kernels."""
    questions, recording = search.questions(batch), search.captured()
    begin = time.perf_counter()
    found = recording(*questions)
    recorded = time.perf_counter() - begin
    return {
        "equal": same(found, search.captured("cpu")(*questions)),
        "record_seconds": recorded,
        "milliseconds": 1e3 * median(replay_seconds(recording, questions)),
        "kernels": kernels(recording, questions),
    }


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
