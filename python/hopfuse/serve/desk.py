"""Threads beside the event loop, for work that grows with a request: decoding, checking and encoding."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

from .batcher import stopping
from .threads import DaemonThreads

#: Threads. The interpreter runs one at a time; the second one works while the first waits for memory or NumPy.
THREADS = 2

P = ParamSpec("P")
R = TypeVar("R")


class Desk:
    """The threads. Each owner has at most one job on them at a time, so that owners take turns.

    Parameters
    ----------
    threads, name, inside
        As of :class:`DaemonThreads`.

    Examples
    --------
    >>> import asyncio
    >>> async def length(text):
    ...     desk = Desk()
    ...     found = await desk.run("team", len, text)
    ...     desk.close()
    ...     return found
    >>> asyncio.run(length("a river"))
    7
    """

    def __init__(
        self,
        threads: int = THREADS,
        name: str = "hopfuse-read",
        inside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._pool, self._closed = DaemonThreads(threads, name, inside), False
        self._turns: dict[str, asyncio.Lock] = {}
        self._jobs: Counter[str] = Counter()  # that run or wait, by owner

    @property
    def threads(self) -> list[threading.Thread]:
        """The threads that were started."""
        return self._pool.threads

    @property
    def jobs(self) -> int:
        """The number of jobs that run or wait."""
        return self._jobs.total()

    async def run(self, owner: str, job: Callable[P, R], /, *given: P.args, **named: P.kwargs) -> R:
        """Return what a job returns; a caller that is cancelled leaves a running job to end by itself.

        Raises
        ------
        RefusalError
            503: the desk was closed before the job began.
        """
        turn = self._turns.setdefault(owner, asyncio.Lock())
        self._jobs[owner] += 1
        try:
            await turn.acquire()
        except BaseException:
            self._leave(owner)
            raise
        loop = asyncio.get_running_loop()

        def end() -> None:
            turn.release()
            self._leave(owner)

        def ended(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(end)

        try:
            running = self._pool.submit(job, *given, **named)
        except BaseException:
            end()
            if self._closed:
                raise stopping() from None
            raise
        running.add_done_callback(ended)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if self._closed and running.cancelled():
                raise stopping() from None
            raise

    def _leave(self, owner: str) -> None:
        self._jobs[owner] -= 1
        if not self._jobs[owner]:
            del self._jobs[owner], self._turns[owner]

    def close(self) -> None:
        """Wait for running jobs, and refuse the others."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)
