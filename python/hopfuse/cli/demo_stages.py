"""The steps of a demo, each with its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


class Stages:
    """Says what is done and, afterwards, how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        with self._console.status(f"{what} ..."):
            yield
        self._console.print(f"{time.perf_counter() - start:6.1f} s  {what}", highlight=False, markup=False)
