"""Other cases on a busy machine: timed while other processes compete for the cores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..settings import Settings
from .base import Workload

#: Processes that each keep a core busy.
OTHERS = 8
#: Ends with its parent, however that ends, because the parent's end of the pipe to its standard input is closed.
SPIN = """
import sys, threading
parent = threading.Thread(target=sys.stdin.read, daemon=True)
parent.start()
while parent.is_alive():
    pass
"""


class Busy(Workload):
    """Another case, timed beside eight processes at 100 % CPU; the limits of a quiet machine do not apply."""

    def __init__(self, settings: Settings, case: Any, batch: int) -> None:
        self.inner: Workload = case(settings).with_threads(settings.threads)
        self.batches = self.inner.batches if settings.quick else (batch,)
        self.data, self.sizes, self.ops = self.inner.data, self.inner.sizes, self.inner.ops
        self.threads, self.calls = self.inner.threads, self.inner.calls
        self.others = 1 if settings.quick else OTHERS

    @contextmanager
    def beside(self) -> Iterator[None]:
        others = [subprocess.Popen((sys.executable, "-c", SPIN), stdin=subprocess.PIPE) for _ in range(self.others)]
        try:
            yield
        finally:
            for other in others:
                other.kill()
                other.communicate()

    def run(self, batch: int, turn: int) -> Any:
        return self.inner.run(batch, turn)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        return self.inner.check(batch, ours)

    def compare(self, batch: int, ours: Any, theirs: Any) -> dict[str, Any]:
        return self.inner.compare(batch, ours, theirs)

    def with_threads(self, threads: int) -> Workload:
        return self.inner.with_threads(threads)

    def task(self) -> dict[str, Any]:
        return self.inner.task()

    def turns(self, batch: int, settings: Settings) -> int:
        """Return more repetitions than elsewhere, because the load differs from turn to turn."""
        return settings.repeats if settings.quick else max(60, self.inner.turns(batch, settings))
