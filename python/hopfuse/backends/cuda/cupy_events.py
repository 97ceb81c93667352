"""The time of launches by CUDA events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .cupy_errors import translated
from .runtime import LaunchTime


class LaunchEvents:
    """Pairs of events around launches, on whichever streams those go to.

    On a device with nothing else to do the first event passes before the host has launched the kernel, so that a time
    includes that call: some microseconds.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._pairs: list[tuple[str, Any, Any]] = []

    @contextmanager
    def around(self, kernel: str) -> Iterator[None]:
        """Record an event before and one after what is queued inside."""
        begin = self._event(kernel)
        yield
        self._pairs.append((kernel, begin, self._event(kernel)))

    def _event(self, kernel: str) -> Any:
        with translated(self._cupy, f"timing {kernel}"):
            return self._cupy.cuda.get_current_stream().record()

    def read(self) -> Iterator[LaunchTime]:
        """Yield the launches in their order; wait for each."""
        for kernel, begin, end in self._pairs:
            end.synchronize()
            milliseconds = self._cupy.cuda.get_elapsed_time(begin, end)
            yield LaunchTime(kernel, float(milliseconds) / 1e3)
