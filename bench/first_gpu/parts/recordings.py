"""Recordings that are made, replayed and dropped must release all their memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..search import Search, same
from ..sizes import Sizes

BATCH = 4


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Read the driver's free memory after each recording, and time the replays of one.

    The first recording loads kernels, which keep their memory. Since other processes may allocate memory
    meanwhile, it counts as a leak only if more is missing at the end than one recording holds.
    """
    card = require_card()
    search = Search()
    questions = search.questions(BATCH)
    expected = search.captured("cpu")(*questions)
    free: list[int] = []
    for _ in range(1 + sizes.recordings):
        if not same(search.captured()(*questions), expected):
            raise FailedError(f"recording {len(free)} differs from the CPU")
        free.append(card.free_bytes())
        journal.note(free_bytes=free)
    recording = search.captured()
    recording(*questions)
    held, leaked = free[-1] - card.free_bytes(), free[0] - free[-1]
    journal.note(recording_bytes=held, leaked_bytes=leaked, replay_seconds=replay_seconds(recording, questions))
    if leaked > held:
        raise FailedError(f"{sizes.recordings} dropped recordings keep {leaked:,} bytes; one holds {held:,}")
    return f"{sizes.recordings} dropped recordings keep {leaked:,} bytes on {BACKEND}; one holds {held:,}"


def replay_seconds(recording: Any, questions: list[Any], times: int = 20) -> list[float]:
    """Return the seconds of whole searches, from arrays on the host to arrays on the host, one right after another."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        recording(*questions)
        taken.append(time.perf_counter() - begin)
    return taken
