"""Another case while other programs want the cores: users' machines are busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..settings import Settings
from .base import Workload

#: Processes that each keep a core at work.
OTHERS = 8
#: It ends with its parent, whatever becomes of that: the parent's end of its standard input closes then.
SPIN = """
import sys, threading
parent = threading.Thread(target=sys.stdin.read, daemon=True)
parent.start()
while parent.is_alive():
    pass
"""


class Busy(Workload):
    """``case`` as it is, timed beside eight processes at 100 % CPU; it has no limit, which is a quiet machine's."""

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
        """More than elsewhere: what others take differs from turn to turn."""
        return settings.repeats if settings.quick else max(60, self.inner.turns(batch, settings))
