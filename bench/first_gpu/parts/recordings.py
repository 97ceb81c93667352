"""Recordings that are made, replayed and dropped must release all their memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..card import BACKEND, free_bytes, require_card
from ..journal import FailedError, Journal
from ..search import Search, same
from ..sizes import Sizes

BATCH = 4


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Read the driver's free memory after each recording, and time the replays of one by CUDA events.

    The first recording loads kernels and cuBLAS, which keep their memory. Since other processes may allocate memory
    meanwhile, it counts as a leak only if more is missing at the end than one recording holds.
    """
    cupy = require_card()
    search = Search()
    questions = search.questions(BATCH)
    expected = search.captured("cpu")(*questions)
    free: list[int] = []
    for _ in range(1 + sizes.recordings):
        if not same(search.captured()(*questions), expected):
            raise FailedError(f"recording {len(free)} differs from the CPU")
        free.append(free_bytes(cupy))
        journal.note(free_bytes=free)
    recording = search.captured()
    recording(*questions)
    held, leaked = free[-1] - free_bytes(cupy), free[0] - free[-1]
    journal.note(recording_bytes=held, leaked_bytes=leaked, replay_seconds=replay_seconds(cupy, recording, questions))
    if leaked > held:
        raise FailedError(f"{sizes.recordings} dropped recordings keep {leaked:,} bytes; one holds {held:,}")
    return f"{sizes.recordings} dropped recordings keep {leaked:,} bytes on {BACKEND}; one holds {held:,}"


def replay_seconds(cupy: Any, recording: Any, questions: list[Any], times: int = 20) -> list[float]:
    """Return the seconds of whole searches between two events, including copies to and from the host."""
    taken = []
    for _ in range(times):
        stream = cupy.cuda.get_current_stream()
        begin = stream.record()
        recording(*questions)
        end = stream.record()
        end.synchronize()
        taken.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    return taken
