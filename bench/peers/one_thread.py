"""hopfuse itself, on one thread."""

from __future__ import annotations

from typing import Any

from ..cases.base import Workload
from ..gate import Rankings
from .base import ONE, Peer


class OneThread(Peer):
    """The same calls with ``threads=1``, to show the gain of more threads, or their cost on busy cores."""

    remark = "hopfuse itself with threads=1"
    runs_on = ONE
    own = True

    def __init__(self, workload: Workload, threads: int) -> None:
        self.workload = workload.with_threads(1)

    def run(self, batch: int) -> Any:
        return self.workload.run(batch, 0)

    def answer(self, found: Any) -> Any:
        hits = getattr(found, "hits", found)
        return Rankings(hits.ids, hits.scores) if hasattr(hits, "ids") else hits.scores
