"""Follow a changing index: replace the searched state by the next one while requests go on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Literal

from ..errors import HopfuseError
from ..index import Index, LiveIndex
from .batcher import stopping
from .errors import RefusalError, damaged
from .metrics import Metrics
from .snapshots import IndexSnapshot

log = logging.getLogger("hopfuse.serve")
#: Seconds between two looks at the disk while a request waits for a seq.
SOON = 0.01
#: The most states that are kept beside the searched one until it is warmed up, since it continues what they have.
MOST_KEPT = 3


class SnapshotFollower:
    """Keeps the searched snapshot of an index at the index's last state.

    It looks for commits, merges them, makes the recipes and searches once, on a thread apart from the kernels', and
    then swaps the snapshot. If a request waits for a state that continues the one before, its search is the first one,
    and what it did not need is made once no commit and no request has come for a while. Until then the state before is
    kept, because a new one continues what it has, such as the names and the rows of ids. After a merge it pauses for as
    long as the merge took, unless a request waits for a seq: so it uses at most half a core, and commits made during
    the pause are merged together. A state that cannot be served is skipped, and the one before stays.

    Parameters
    ----------
    live : LiveIndex
    snapshot : IndexSnapshot
        The snapshot that is searched now.
    make : callable
        ``make(index, before)`` returns the snapshot of a state of the index.
    serve : callable
        ``serve(snapshot)``, called on the event loop.
    thread : Executor
        Where states are read and snapshots made.
    metrics : Metrics
    seconds : float
        Interval between two looks at the disk.
    """

    def __init__(
        self,
        live: LiveIndex[Index],
        snapshot: IndexSnapshot,
        *,
        make: Callable[[Index, IndexSnapshot], IndexSnapshot],
        serve: Callable[[IndexSnapshot], None],
        thread: Executor,
        metrics: Metrics,
        seconds: float,
    ) -> None:
        self._live, self._snapshot, self._make, self._serve = live, snapshot, make, serve
        self._thread, self._metrics, self._seconds = thread, metrics, seconds
        self._loop = asyncio.get_running_loop()
        self._changed, self._asked = asyncio.Event(), asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._refused: Index | None = None
        self._kept: list[IndexSnapshot] = []
        self._refuses = False
        self._said = ""
        self._looking = 0
        self._task = asyncio.create_task(self._run())

    def changed(self) -> None:
        """Look now, since this process has committed a change; callable from any thread."""
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._changed.set)

    async def reach(self, at_least: int | Literal["latest"], deadline: float) -> None:
        """Wait until the searched state has at least a seq, or all that any process has committed until now.

        Raises
        ------
        RefusalError
            504: the deadline (:func:`time.monotonic`) passed before. 503: the server stops. 500: the directory cannot
            be read.
        """
        seq = await self._newest(deadline) if at_least == "latest" else at_least
        if self._snapshot.seq >= seq:
            return
        if self._refuses:
            raise stopping()
        waiter = (seq, self._loop.create_future())
        self._waiting.append(waiter)
        self._metrics.waiting.labels(self._snapshot.name).inc()
        self._asked.set()
        self._changed.set()
        try:
            await asyncio.wait_for(waiter[1], deadline - time.monotonic())
        except TimeoutError:
            raise RefusalError(
                "timeout",
                "at_least",
                "{field} is {given}, and the index is at seq {seq}; give the seq of a change's response, or a larger "
                "timeout_ms",
                given=seq,
                seq=self._snapshot.seq,
            ) from None
        finally:
            self._waiting = [one for one in self._waiting if one is not waiter]
            self._metrics.waiting.labels(self._snapshot.name).dec()

    async def _newest(self, deadline: float) -> int:
        """Return the seq that the directory has now."""
        self._looking += 1
        try:
            look = self._loop.run_in_executor(self._thread, lambda: self._live.refresh().seq)
            return await asyncio.wait_for(asyncio.shield(look), deadline - time.monotonic())
        except TimeoutError:
            raise RefusalError(
                "timeout", "timeout_ms", "{field} passed before the index's directory was read; give a larger one"
            ) from None
        except (HopfuseError, OSError) as error:
            self._fail(error)
            raise damaged() from None
        finally:
            self._looking -= 1

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a seq."""
        return len(self._waiting) + self._looking

    def refuse(self) -> None:
        """Refuse requests that wait for a seq, now and later: the server stops."""
        self._refuses = True
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(stopping())

    async def stop(self) -> None:
        """Stop following."""
        self.refuse()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        took = 0.0
        while True:
            is_idle = await self._pause(took)
            began = time.monotonic()
            try:
                snapshot = await self._loop.run_in_executor(self._thread, self._next, is_idle)
            except Exception as error:  # the state before stays
                self._fail(error)
                took = time.monotonic() - began
                continue
            self._said = ""
            if snapshot is None:
                took = 0.0
                continue
            took = time.monotonic() - began
            self._swap(snapshot, took)

    async def _pause(self, took: float) -> bool:
        """Wait until it is time to look; return whether nothing has asked for it."""
        if took and not self._waiting:
            await _within(self._asked, took)
        waits = bool(self._waiting)
        await _within(self._changed, SOON if waits else self._seconds)
        is_idle = not (waits or self._changed.is_set())
        self._asked.clear()
        self._changed.clear()
        return is_idle

    def _next(self, is_idle: bool) -> IndexSnapshot | None:
        """Return the snapshot of the last state; None if it is already searched, or was refused."""
        index = self._live.refresh()
        if index is self._snapshot.index or index is self._refused:
            if is_idle and self._kept:
                self._catch_up()
            return None
        kept: list[IndexSnapshot] = []
        try:
            snapshot = self._make(index, self._snapshot)
            if self._waiting and len(self._kept) < MOST_KEPT and index.rows_since(self._snapshot.index) is not None:
                kept = [*self._kept, self._snapshot]
            else:
                snapshot.warm_up()
        except Exception:
            self._refused = index
            raise
        self._kept = kept
        return snapshot

    def _catch_up(self) -> None:
        """Search the searched state once, since a request was the first to do so."""
        try:
            self._snapshot.warm_up()
        finally:
            self._kept = []

    def _swap(self, snapshot: IndexSnapshot, took: float) -> None:
        self._snapshot, self._refused = snapshot, None
        self._serve(snapshot)
        self._metrics.reload_seconds.labels(snapshot.name).observe(took)
        for seq, waiter in self._waiting:
            if seq <= snapshot.seq and not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        name = self._snapshot.name
        self._metrics.reload_failures.labels(name).inc()
        if str(error) != self._said:  # log each error once
            self._said = str(error)
            log.error("index %s stays at seq %d: %s", name, self._snapshot.seq, error, exc_info=error)


async def _within(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, for at most so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
