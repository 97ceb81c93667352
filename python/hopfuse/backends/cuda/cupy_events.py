"""Time kernel launches by CUDA events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .cupy_errors import translated
from .runtime import LaunchTime


class LaunchEvents:
    """Pairs of events around launches, on the streams of the launches.

    On an idle device the first event completes before the host has launched the kernel, so a time includes some
    microseconds of launch overhead.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pairs: list[tuple[str, Any, Any]] = []

    @contextmanager
    def around(self, kernel: str) -> Iterator[None]:
        """Record an event before and after the work queued inside."""
        begin = self._event(kernel)
        yield
        self._pairs.append((kernel, begin, self._event(kernel)))

    def _event(self, kernel: str) -> Any:
        with translated(self._cupy, f"timing {kernel}"):
            return self._cupy.cuda.get_current_stream().record()

    def read(self) -> Iterator[LaunchTime]:
        """Yield the launches in order, waiting for each."""
        for kernel, begin, end in self._pairs:
            end.synchronize()
            milliseconds = self._cupy.cuda.get_elapsed_time(begin, end)
            yield LaunchTime(kernel, float(milliseconds) / 1e3)
